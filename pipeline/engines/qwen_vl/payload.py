"""A request in the words of the protocol: the static system prompt, then the images, then the text."""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from urllib.parse import quote

from openai import omit

from models.transcription import FittedImage, VlmRequest
from pipeline.engines.qwen_vl.endpoint import Prompt, VlmEndpoint


def call_arguments(request: VlmRequest, endpoint: VlmEndpoint, prompt: Prompt) -> dict[str, Any]:
    """What ``chat.completions.create`` is called with. Nothing in the body depends on time or attempt, so that
    equal pages make equal prompts."""
    extra_body = dict(endpoint.extra_body)
    if endpoint.send_priority:
        extra_body["priority"] = request.priority
    return {
        "model": endpoint.model_id,
        "messages": _messages(request, prompt),
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "stream": False,
        "extra_body": extra_body or None,
        "extra_headers": _headers(request.request_id),
    }


def _messages(request: VlmRequest, prompt: Prompt) -> list[dict[str, Any]]:
    images = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in request.images]
    text = {"type": "text", "text": prompt.user(request.page_count)}
    return [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": [*images, text]},
    ]


def _headers(request_id: str) -> dict[str, Any]:
    """vLLM takes ``X-Request-Id`` as its own. What the SDK would add of somebody's OpenAI account stays home."""
    return {
        "X-Request-Id": quote(request_id, safe=":/#@+"),
        "OpenAI-Organization": omit,
        "OpenAI-Project": omit,
    }


def data_url(image: FittedImage) -> str:
    return f"data:image/png;base64,{b64encode(image.encoded).decode('ascii')}"
