"""Qwen-VL, or any model that reads images, behind an OpenAI-compatible endpoint: vLLM, a LiteLLM gateway. This
package alone imports openai.

One call is one connection. A kept connection saves milliseconds of a call that takes seconds, but a server may
close it just when it is used again (vLLM does after some of its errors), and then nobody knows whether the model
worked. A fresh connection also lets a load balancer choose a replica for each page.
"""

from __future__ import annotations

import asyncio
import time

import httpx2
import openai

from models.errors import SettingsError, VlmTimedOut
from models.transcription import VlmReply, VlmRequest
from pipeline.engines.qwen_vl.answer_size import PLAIN, bound_answer
from pipeline.engines.qwen_vl.endpoint import NO_KEY, NO_THINKING, Prompt, VlmEndpoint
from pipeline.engines.qwen_vl.faults import translated
from pipeline.engines.qwen_vl.payload import call_arguments
from pipeline.engines.qwen_vl.replies import reply_from

__all__ = ["NO_KEY", "NO_THINKING", "Prompt", "QwenVlEngine", "VlmEndpoint"]

LOOPBACK = ("all://127.0.0.1", "all://localhost", "all://[::1]")
"""Reached directly even where the environment names a proxy."""


class QwenVlEngine:
    """Makes one call a request, on the event loop it is first used on. It bounds neither concurrency nor retries:
    that is the caller's."""

    def __init__(self, endpoint: VlmEndpoint, prompt: Prompt) -> None:
        self._endpoint = endpoint
        self._prompt = prompt
        self._client = _client(endpoint)

    @property
    def model_id(self) -> str:
        return self._endpoint.model_id

    async def transcribe(self, request: VlmRequest) -> VlmReply:
        arguments = call_arguments(request, self._endpoint, self._prompt)
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(self._endpoint.answer_timeout_s):
                raw = await self._client.chat.completions.with_raw_response.create(**arguments)
        except TimeoutError as error:
            raise VlmTimedOut(self._endpoint.too_slow) from error
        except openai.OpenAIError as error:
            raise translated(error, self._endpoint) from error
        elapsed_s = time.monotonic() - started_s
        return reply_from(raw.content, endpoint=self._endpoint, elapsed_s=elapsed_s)

    async def close(self) -> None:
        await self._client.close()


def _client(endpoint: VlmEndpoint) -> openai.AsyncOpenAI:
    try:
        return openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            max_retries=0,
            http_client=httpx2.AsyncClient(
                timeout=httpx2.Timeout(
                    endpoint.answer_timeout_s, connect=endpoint.connect_timeout_s, pool=None
                ),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
                mounts=dict.fromkeys(LOOPBACK),
                headers={"Connection": "close", "Accept-Encoding": PLAIN},
                event_hooks={"response": [bound_answer]},
            ),
        )
    except (httpx2.InvalidURL, ValueError, ImportError) as error:
        raise SettingsError(
            f"{endpoint.shown_url}: {error}; correct the address of the VLM, or the proxy that the environment names"
        ) from error
