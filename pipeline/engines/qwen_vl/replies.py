"""A chat completion's body, read with tolerance: servers and gateways leave out much of what the protocol has."""

from __future__ import annotations

import json
from collections.abc import Mapping

from models.errors import VlmBadResponse
from models.transcription import TokenUsage, VlmReply
from pipeline.engines.qwen_vl.endpoint import VlmEndpoint
from pipeline.engines.qwen_vl.wording import error_words, shown_text, words_of

MOST_TOKENS = 2**31
"""No call has so many: a count above it is no count, and a cost of fewer fits 63 bits."""


def reply_from(body: bytes, *, endpoint: VlmEndpoint, elapsed_s: float) -> VlmReply:
    """Raises VlmBadResponse for a body that is no chat completion."""
    document = _json_object(body, endpoint)
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise VlmBadResponse(_no_completion(endpoint, error_words(document, endpoint) or "it has no choice"))
    return VlmReply(
        text=_sound(_message_text(message)),
        finish_reason=_name(choice.get("finish_reason"), endpoint),
        usage=usage_from(document.get("usage")),
        model_id=_name(document.get("model"), endpoint) or endpoint.model_id,
        elapsed_s=elapsed_s,
    )


def usage_from(usage: object) -> TokenUsage | None:
    """None where the server did not say what the call cost. No prompt is free of tokens: zero says nothing."""
    if not isinstance(usage, Mapping):
        return None
    prompt_tokens = _count(usage.get("prompt_tokens"))
    completion_tokens = _count(usage.get("completion_tokens"))
    if not prompt_tokens or completion_tokens is None:
        return None
    return TokenUsage(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cached_tokens=_part(usage, "prompt_tokens_details", "cached_tokens", prompt_tokens),
        reasoning_tokens=_part(usage, "completion_tokens_details", "reasoning_tokens", completion_tokens),
    )


def _json_object(body: bytes, endpoint: VlmEndpoint) -> Mapping[str, object]:
    try:
        document = json.loads(body, strict=False)
    except (ValueError, RecursionError) as error:
        raise VlmBadResponse(_no_completion(endpoint, words_of(body, endpoint) or "empty")) from error
    if not isinstance(document, dict):
        raise VlmBadResponse(_no_completion(endpoint, shown_text(str(document), endpoint)))
    return document


def _no_completion(endpoint: VlmEndpoint, what: str) -> str:
    return (
        f"{endpoint.shown_url}: the answer is no chat completion ({what}); "
        "check that the address ends in /v1 and what stands between here and the model"
    )


def _message_text(message: Mapping[str, object]) -> str:
    """The content as one string; a model's refusal, which may come apart from it, where there is none."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(_part_text(part) for part in content)
    if isinstance(content, str) and content:
        return content
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def _sound(text: str) -> str:
    """Half a surrogate pair, which JSON can spell but no file can hold, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _name(value: object, endpoint: VlmEndpoint) -> str | None:
    """One short line, as it is stored and shown with each call."""
    return shown_text(_sound(value), endpoint) if isinstance(value, str) else None


def _part_text(part: object) -> str:
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else ""


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < MOST_TOKENS else None


def _part(usage: Mapping[str, object], details: str, name: str, whole: int) -> int | None:
    """A part of a count, None where it is not told or greater than the whole."""
    parts = usage.get(details)
    count = _count(parts.get(name)) if isinstance(parts, Mapping) else None
    return count if count is not None and count <= whole else None
