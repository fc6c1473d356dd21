"""Calls to the real service through the product's own client."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from typing import Final

from PIL import Image

from models.transcription import FittedImage, VlmReply, VlmRequest
from pipeline.answers.prompt import SYSTEM_PROMPT, user_text
from pipeline.engines.qwen_vl import NO_THINKING, Prompt, QwenVlEngine, VlmEndpoint
from pipeline.visual_tokens import MAX_ASPECT_RATIO, count
from tests.vllm.server import KEY, VllmServer

PROMPT: Final = Prompt(system=SYSTEM_PROMPT, user=user_text)
ANSWER_TIMEOUT_S: Final = 600.0
"""The machine may be busy with something else."""


def sized_image(width_px: int, height_px: int, server: VllmServer, *, shade: int = 255) -> FittedImage:
    """A plain image as large as asked for, with the tokens that its size is expected to cost. Another shade is
    another image: the server keeps what it has seen."""
    encoded = io.BytesIO()
    Image.new("L", (width_px, height_px), shade).save(encoded, format="PNG", compress_level=1)
    is_taken = max(width_px, height_px) <= MAX_ASPECT_RATIO * min(width_px, height_px)
    return FittedImage(
        encoded=encoded.getvalue(),
        width_px=width_px,
        height_px=height_px,
        visual_tokens=count(width_px, height_px, server.budget) if is_taken else 0,
        tier="full",
    )


def request_with(
    *images: FittedImage, max_tokens: int = 1, priority: int = 0, page_count: int | None = None
) -> VlmRequest:
    """Each image a page, unless ``page_count`` says otherwise."""
    return VlmRequest(
        request_id="d1/1/1",
        images=images,
        temperature=0.0,
        max_tokens=max_tokens,
        priority=priority,
        page_count=max(1, len(images)) if page_count is None else page_count,
    )


def engine_for(
    server: VllmServer, *, key: str = KEY, prompt: Prompt = PROMPT, body: Mapping[str, object] | None = None
) -> QwenVlEngine:
    """``body``: fields of the request beyond those that the product sends to vLLM."""
    extra_body = {**NO_THINKING, **(body or {})}
    endpoint = VlmEndpoint(
        base_url=server.base_url,
        model_id=server.plan.model_id,
        api_key=key,
        answer_timeout_s=ANSWER_TIMEOUT_S,
        send_priority=True,
        extra_body=extra_body,
    )
    return QwenVlEngine(endpoint, prompt)


def transcribed(
    server: VllmServer, request: VlmRequest, *, key: str = KEY, prompt: Prompt = PROMPT, **body: object
) -> VlmReply:
    """One call on an event loop of its own."""

    async def call() -> VlmReply:
        engine = engine_for(server, key=key, prompt=prompt, body=body)
        try:
            return await engine.transcribe(request)
        finally:
            await engine.close()

    return asyncio.run(call())


def prompt_tokens(server: VllmServer, *images: FittedImage, page_count: int | None = None) -> int:
    """As billed."""
    usage = transcribed(server, request_with(*images, page_count=page_count)).usage
    assert usage is not None
    return usage.prompt_tokens
