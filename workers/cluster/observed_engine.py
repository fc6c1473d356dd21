"""The engine that calls the VLM, with its calls timed and traced."""

from __future__ import annotations

import time
from typing import Any, Final
from urllib.parse import urlsplit

from models.errors import VlmError
from models.transcription import VlmReply, VlmRequest
from pipeline.ports import VlmEngine
from workers.cluster.metrics import WorkerMetrics
from workers.cluster.spans import Value
from workers.cluster.tracing import client_span

ANSWERED: Final = "ok"
PORTS: Final = {"http": 80, "https": 443}


class ObservedVlmEngine:
    """Calls as ``engine`` does, which calls the service at ``url``. The names of a span's attributes are those of
    OpenTelemetry's semantic conventions for generative AI; neither prompt nor answer is among them."""

    def __init__(self, engine: VlmEngine, url: str, metrics: WorkerMetrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self._server = _server(url)

    @property
    def model_id(self) -> str:
        return self._engine.model_id

    async def transcribe(self, request: VlmRequest) -> VlmReply:
        started_s = time.monotonic()
        attributes = request_attributes(request, self.model_id) | self._server
        with client_span(f"chat {self.model_id}", attributes) as span:
            try:
                reply = await self._engine.transcribe(request)
            except VlmError as error:
                self._metrics.call_ended(error.code, time.monotonic() - started_s)
                raise
            self._metrics.call_ended(ANSWERED, time.monotonic() - started_s)
            span.set(reply_attributes(reply))
            return reply

    async def close(self) -> None:
        await self._engine.close()


def request_attributes(request: VlmRequest, model_id: str) -> dict[str, Value]:
    """The service speaks OpenAI's protocol, whatever is behind it."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": model_id,
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.output.type": "text",
        "doctriage.request_id": request.request_id,
        "doctriage.predicted_visual_tokens": request.visual_tokens,
    }


def reply_attributes(reply: VlmReply) -> dict[str, Value]:
    """What the server did not say is left out."""
    told: dict[str, Value] = {"gen_ai.response.model": reply.model_id}
    if reply.finish_reason is not None:
        told["gen_ai.response.finish_reasons"] = (reply.finish_reason,)
    if reply.usage is not None:
        told["gen_ai.usage.input_tokens"] = reply.usage.prompt_tokens
        told["gen_ai.usage.output_tokens"] = reply.usage.completion_tokens
        if reply.usage.cached_tokens is not None:
            told["gen_ai.usage.cache_read.input_tokens"] = reply.usage.cached_tokens
        if reply.usage.reasoning_tokens is not None:
            told["gen_ai.usage.reasoning.output_tokens"] = reply.usage.reasoning_tokens
    return told


def _server(url: str) -> dict[str, Value]:
    """Without whatever in the address lets one in."""
    parts = urlsplit(url)
    port = parts.port or PORTS.get(parts.scheme)
    named: dict[str, Any] = {"server.address": parts.hostname, "server.port": port}
    return {name: value for name, value in named.items() if value is not None}
