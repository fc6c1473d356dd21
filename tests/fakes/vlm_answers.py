"""The bodies that the fake VLM service answers with."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate

from starlette.responses import HTMLResponse, JSONResponse, Response

from models.transcription import TokenUsage
from tests.fakes.vlm_script import RATE_LIMITS, ChatRequest, Fault, Script

CLOCK_AHEAD_S = 3600
FILLER = "if a passage of three metres is kept free for the fire service at all times. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An HTTP answer that is no completion."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)


def text_tokens(text: str) -> int:
    return math.ceil(len(text) / 4)


def answer_text(request: ChatRequest, fault: Fault | None, script: Script) -> str | None:
    """The message's content; None for a message without any."""
    honest = script.answer(request)
    texts: dict[Fault | None, str | None] = {
        Fault.TRUNCATED: honest[: len(honest) // 2],
        Fault.REPETITION: honest + FILLER * (request.max_tokens * 4 // len(FILLER)),
        Fault.LIE: script.other_page,
        Fault.EMPTY: "",
        Fault.CONTENT_NONE: None,
        Fault.REFUSAL: "I'm sorry, but I can't help with transcribing this document.",
        Fault.REFUSAL_APART: None,
        Fault.CHAT: f"Sure! Here is the transcription:\n\n{honest}\n\nLet me know if you need anything else.",
        Fault.PROMPT_ECHO: f"{request.system}\n{request.text}",
        Fault.FENCE: f"```markdown\n{honest}\n```",
        Fault.WRONG_SCRIPT: "这一页是港口的记录，西风，海面平静，码头上有九条船。" * 3,
        Fault.BROKEN_TABLE: f"{honest}\n\n<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>",
        Fault.CONTENT_FILTERED: honest[:20],
    }
    return texts.get(fault, honest)


def finish_reason(fault: Fault | None) -> str:
    if fault in (Fault.TRUNCATED, Fault.REPETITION):
        return "length"
    return "content_filter" if fault is Fault.CONTENT_FILTERED else "stop"


def reported_usage(usage: TokenUsage, fault: Fault | None, script: Script) -> TokenUsage | None:
    """What the answer says that it cost."""
    match fault:
        case Fault.NO_USAGE:
            return None
        case Fault.ZERO_USAGE:
            return TokenUsage(prompt_tokens=0, completion_tokens=0)
        case Fault.WRONG_BILL:
            prompt_tokens = usage.prompt_tokens + script.wrong_bill_tokens
            return TokenUsage(prompt_tokens=prompt_tokens, completion_tokens=usage.completion_tokens)
        case _:
            return usage


def completion(
    request: ChatRequest, text: str | None, usage: TokenUsage | None, fault: Fault | None
) -> dict[str, object]:
    """The body of a chat completion, as vLLM writes it."""
    content: object = [{"type": "text", "text": text}] if fault is Fault.CONTENT_PARTS else text
    refused = fault is Fault.REFUSAL_APART
    message = {
        "role": "assistant",
        "content": content,
        "refusal": "I can't help with that." if refused else None,
    }
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(fault)}
    body: dict[str, object] = {
        "id": f"chatcmpl-{request.request_id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [] if fault is Fault.NO_CHOICES else [choice],
    }
    return body if usage is None else body | {"usage": _usage_body(usage)}


def _usage_body(usage: TokenUsage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def refusal(fault: Fault | None, request: ChatRequest, script: Script) -> Refusal:
    """The answer at the door, in the words of vLLM 0.32 where it has such an answer."""
    if fault in RATE_LIMITS:
        return _error(429, "Rate limit reached", _pause_headers(fault, script.retry_after_s))
    refusals = {
        Fault.OVERLOADED: _error(503, "The server is overloaded: too many requests wait"),
        Fault.UNAUTHORISED: Refusal(status=401, body={"error": f"Unauthorized key {request.key}"}),
        Fault.FORBIDDEN: _error(403, f"Key {request.key} may not use this model"),
        Fault.MODEL_NOT_FOUND: _error(404, f"The model `{request.model}` does not exist."),
        Fault.UNKNOWN_PARAMETER: _error(
            400, "Unrecognized request arguments: priority, chat_template_kwargs"
        ),
        Fault.TOO_MANY_IMAGES: _error(400, "At most 2 image(s) may be provided in one prompt."),
        Fault.TOO_NARROW: _error(400, "Failed to apply Qwen2_5_VLProcessor on data"),
        Fault.TOO_LONG: _error(400, "This model's maximum context length is 4096 tokens, not 5000."),
        Fault.TOO_LARGE: Refusal(status=413, body="<html><title>413 Request Entity Too Large</title></html>"),
        Fault.MOVED: Refusal(status=308, body="", headers={"Location": "https://other.test/v1?key=abc"}),
        Fault.ECHO: Refusal(
            status=422,
            body={"detail": [{"msg": f"not valid: {request.fields} {request.key}", "loc": ["body"]}]},
        ),
    }
    return refusals[fault or Fault.OVERLOADED]


def _pause_headers(fault: Fault | None, pause_s: float) -> dict[str, str]:
    now_s = time.time() + CLOCK_AHEAD_S
    headers: dict[Fault | None, dict[str, str]] = {
        Fault.RATE_LIMITED: {"Retry-After": f"{pause_s:g}"},
        Fault.RATE_LIMITED_IN_MS: {"retry-after-ms": f"{pause_s * 1000:g}"},
        Fault.RATE_LIMITED_UNTIL: {
            "Date": formatdate(now_s, usegmt=True),
            "Retry-After": formatdate(now_s + pause_s, usegmt=True),
        },
    }
    return headers.get(fault, {})


def ready_response(fault: Fault | None) -> Response | None:
    """What comes instead of a completion, after the model has worked; None where a completion comes."""
    responses: dict[Fault | None, Response] = {
        Fault.SERVER_ERROR: JSONResponse(
            {"error": {"message": "EngineCore died", "code": 500}}, status_code=500
        ),
        Fault.BAD_GATEWAY: HTMLResponse("<html><title>502 Bad Gateway</title>nginx</html>", status_code=502),
        Fault.INVALID_JSON: Response('{"id": "chatcmpl-1", "choices": [', media_type="application/json"),
        Fault.WEB_PAGE: HTMLResponse("<!DOCTYPE html><html><title>Welcome\nto nginx!</title></html>"),
        Fault.ERROR_IN_SUCCESS: JSONResponse({"error": {"message": "upstream gave up", "code": 500}}),
    }
    return responses.get(fault)


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Refusal:
    body = {"error": {"message": message, "type": "error", "param": None, "code": status}}
    return Refusal(status=status, body=body, headers=headers or {})


def metrics_text(
    model: str,
    *,
    running: int,
    waiting: int,
    kv_cache_usage: float,
    prompt_tokens: int = 0,
    completion_tokens: int = 0,
) -> str:
    """What vLLM tells Prometheus, as far as a client cares."""
    labels = f'{{engine="0",model_name="{model}"}}'
    values = {
        "vllm:num_requests_running": running,
        "vllm:num_requests_waiting": waiting,
        "vllm:kv_cache_usage_perc": kv_cache_usage,
    }
    counters = {
        "vllm:prompt_tokens_total": prompt_tokens,
        "vllm:generation_tokens_total": completion_tokens,
    }
    lines = [f"# TYPE {name} gauge\n{name}{labels} {float(value)}\n" for name, value in values.items()]
    lines += [f"# TYPE {name} counter\n{name}{labels} {float(value)}\n" for name, value in counters.items()]
    return "".join(lines)
