"""Errors of openai and httpx2 in terms of our tree, with what to do about them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2
import openai

from models.errors import (
    VlmBadResponse,
    VlmConnectionLost,
    VlmError,
    VlmModelNotFound,
    VlmOverloaded,
    VlmRateLimited,
    VlmRequestRefused,
    VlmServerError,
    VlmTimedOut,
    VlmUnauthorised,
    VlmUnreachable,
)
from pipeline.engines.qwen_vl.answer_size import AnswerUnfit
from pipeline.engines.qwen_vl.endpoint import VlmEndpoint, without_secrets
from pipeline.engines.qwen_vl.wording import shown_text, words_of

NO_CONNECTION = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    ssl.SSLError,
)

KINDS: Mapping[int, type[VlmError]] = {
    401: VlmUnauthorised,
    403: VlmUnauthorised,
    404: VlmModelNotFound,
    405: VlmModelNotFound,
    408: VlmTimedOut,
    429: VlmRateLimited,
    503: VlmOverloaded,
}
"""By HTTP status. Any other from 500 on is a VlmServerError, the rest is refused."""

REMEDIES: Mapping[type[VlmError], str] = {
    VlmUnauthorised: "the key is refused; set DOCTRIAGE_VLM__API_KEY or DOCTRIAGE_VLM__API_KEY_FILE",
    VlmModelNotFound: "{url}/models lists the models: correct --vlm-model, or --vlm-url, which ends in /v1",
    VlmTimedOut: "lower DOCTRIAGE_VLM__CONCURRENCY",
    VlmRateLimited: "lower DOCTRIAGE_VLM__CONCURRENCY or raise the quota",
    VlmOverloaded: "it is loading or its queue is full; lower DOCTRIAGE_VLM__CONCURRENCY if this lasts",
    VlmServerError: "see the log of the VLM service",
}


def translated(error: openai.OpenAIError, endpoint: VlmEndpoint) -> VlmError:
    """Ours for theirs; to be raised ``from`` theirs."""
    if isinstance(error, openai.APIStatusError):
        return _status_error(error.response, endpoint)
    if isinstance(error, openai.APIConnectionError):
        return _connection_error(error, endpoint)
    return VlmBadResponse(f"{endpoint.shown_url}: {shown_text(str(error), endpoint)}")


def _connection_error(error: openai.APIConnectionError, endpoint: VlmEndpoint) -> VlmError:
    cause, reason = error.__cause__, shown_text(_reason(error), endpoint)
    if isinstance(cause, NO_CONNECTION):
        return VlmUnreachable(f"{endpoint.shown_url}: no connection ({reason}); {_connection_remedy(reason)}")
    if isinstance(error, openai.APITimeoutError):
        return VlmTimedOut(endpoint.too_slow)
    if isinstance(cause, AnswerUnfit):
        return VlmBadResponse(f"{endpoint.shown_url}: {cause}")
    if isinstance(cause, httpx2.DecodingError):
        return VlmBadResponse(f"{endpoint.shown_url}: the answer cannot be decoded ({reason})")
    return VlmConnectionLost(
        f"{endpoint.shown_url}: the connection ended before the answer was there ({reason}); "
        "see the log of the VLM service"
    )


def _connection_remedy(reason: str) -> str:
    if "certificate verify failed" in reason.lower():
        return "name a file with the certificates that you trust in SSL_CERT_FILE, or correct --vlm-url"
    return "start the VLM service or correct --vlm-url"


def _reason(error: BaseException) -> str:
    """The words of the innermost cause that has any: "Connection refused", not "Connection error"."""
    words, cause = "", error.__cause__
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        words = _words(cause) or words
        cause = cause.__cause__ or cause.__context__
    return words or type(error.__cause__ or error).__name__


def _words(cause: BaseException) -> str:
    """asyncio's text for a refused connection is an address; the system's own word for the number says more. The
    numbers of TLS are no numbers of the system."""
    if isinstance(cause, ssl.SSLError):
        return cause.strerror or str(cause)
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno)
    return getattr(cause, "strerror", None) or str(cause)


def _status_error(response: httpx2.Response, endpoint: VlmEndpoint) -> VlmError:
    status = response.status_code
    kind = KINDS.get(status) or (VlmServerError if status >= 500 else VlmRequestRefused)
    said = f"HTTP {status}"
    if kind is not VlmUnauthorised:  # gateways quote parts of the key there
        said += f": {words_of(response.content, endpoint) or shown_text(response.reason_phrase, endpoint)}"
    fixed = REMEDIES.get(kind)
    remedy = fixed.format(url=endpoint.shown_url) if fixed else _refusal_remedy(response, said, endpoint)
    return kind(
        f"{endpoint.shown_url}: {said}; {remedy}",
        retry_after_s=wanted_pause_s(response.headers, now=datetime.now(UTC)),
    )


def _refusal_remedy(response: httpx2.Response, said: str, endpoint: VlmEndpoint) -> str:
    """What to change so that such a request is taken."""
    lower = said.lower()
    extras = [*endpoint.extra_body, *(["priority"] if endpoint.send_priority else [])]
    unknown = [name for name in extras if name.lower() in lower]
    if response.is_redirect:
        target = without_secrets(response.headers.get("location", "elsewhere"))
        return f"it moved to {shown_text(target, endpoint)}; correct --vlm-url"
    if unknown:
        names = " and ".join(unknown)
        return f"if this server does not know {names}, set DOCTRIAGE_VLM__SEND_VLLM_OPTIONS=false"
    if response.status_code == 413:
        return "raise the request size that the proxy in front of the model takes"
    if "image" in lower and "at most" in lower:
        return "send fewer images a prompt, or start the server with a higher --limit-mm-per-prompt"
    if any(words in lower for words in ("context length", "max_model_len", "maximum model length")):
        return "choose a smaller token budget, or start the server with a higher --max-model-len"
    return "the request does not suit this server; compare its flags with `doctriage plan`"


def wanted_pause_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """How long the server asks to wait: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date (RFC 9110,
    10.2.3). A date counts from the server's own ``Date``, where it sends one. None for none, or for nonsense."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    until, since = _moment(text), _moment(headers.get("date", "")) or now
    return None if until is None else max(0.0, (until - since).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if abs(number) < 1e9 else None


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
