"""Calls to a VLM service, as the tests make them."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable

from PIL import Image

from models.transcription import FittedImage, VlmReply, VlmRequest
from pipeline.engines.qwen_vl import Prompt, QwenVlEngine, VlmEndpoint
from tests.fakes.vlm_server import FakeVlm

DEADLINE_S = 30
KEY = "sk-do-not-show-4711"
PROMPT = Prompt(system="You copy pages.", user=lambda page_count: f"Copy {page_count} page(s).")


def fitted_image(width_px: int = 840, height_px: int = 1176, *, noisy: bool = False) -> FittedImage:
    """A white page, or one of noise, which does not compress."""
    size = (width_px, height_px)
    image = (
        Image.frombytes("L", size, os.urandom(width_px * height_px)) if noisy else Image.new("L", size, 255)
    )
    png = io.BytesIO()
    image.save(png, format="PNG")
    return FittedImage(
        encoded=png.getvalue(), width_px=width_px, height_px=height_px, visual_tokens=0, tier="full"
    )


def request_for(*images: FittedImage, request_id: str = "d1/1/1", max_tokens: int = 256) -> VlmRequest:
    return VlmRequest(
        request_id=request_id,
        images=images or (fitted_image(),),
        temperature=0.0,
        max_tokens=max_tokens,
        priority=3,
    )


def engine_for(fake: FakeVlm, **options: object) -> QwenVlEngine:
    wanted = {"base_url": fake.base_url, "model_id": fake.model_id, "api_key": KEY, "answer_timeout_s": 20.0}
    return QwenVlEngine(VlmEndpoint(**(wanted | options)), PROMPT)  # type: ignore[arg-type]


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():
            await asyncio.sleep(0.02)


def transcribed(fake: FakeVlm, request: VlmRequest | None = None, **options: object) -> VlmReply:
    """One call on an event loop of its own."""

    async def call() -> VlmReply:
        engine = engine_for(fake, **options)
        try:
            return await engine.transcribe(request or request_for())
        finally:
            await engine.close()

    return asyncio.run(call())
