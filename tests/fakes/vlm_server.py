"""A stand-in for vLLM's OpenAI-compatible server on a real socket, which misbehaves as its script says.

It resizes as vLLM does and bills by the formula of ``pipeline.visual_tokens``: the template and the texts, and for
each image its visual tokens and the two that open and close it.
"""

from __future__ import annotations

import asyncio
import io
import time
from base64 import b64decode
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from models.transcription import TokenUsage
from pipeline.visual_tokens import MAX_ASPECT_RATIO, VisualTokenBudget, count, model_family
from tests.fakes.asgi_host import AsgiHost, reset
from tests.fakes.vlm_answers import (
    answer_text,
    completion,
    metrics_text,
    ready_response,
    refusal,
    reported_usage,
    text_tokens,
)
from tests.fakes.vlm_load import Load
from tests.fakes.vlm_script import (
    AT_THE_DOOR,
    WITHOUT_ANSWER,
    ChatRequest,
    Fault,
    Script,
    SeenRequest,
)

__all__ = ["DEFAULT_BUDGET", "TEMPLATE_TOKENS", "FakeVlm", "Fault", "Script"]

TEMPLATE_TOKENS = 19
"""What the chat template adds to every prompt."""
IMAGE_FRAME_TOKENS = 2
FULL_CACHE_USAGE = 0.9
"""With every place taken: a plan gives no more places than the key-value cache has room for."""

DEFAULT_BUDGET = VisualTokenBudget(
    family=model_family("qwen2.5-vl"), min_pixels=200_704, max_pixels=1_756_160
)


class FakeVlm:
    """Serves between ``with`` and its end. ``script`` may be replaced meanwhile, but for its ``concurrency``.
    All counts are of this object's lifetime; ``/metrics`` counts ``tokens_before`` of each kind as well."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        model_id: str = "qwen2.5-vl-7b-fp8",
        budget: VisualTokenBudget = DEFAULT_BUDGET,
        api_key: str | None = None,
        images_per_prompt: int = 8,
    ) -> None:
        self.script = script or Script()
        self.model_id = model_id
        self.budget = budget
        self.api_key = api_key
        self.images_per_prompt = images_per_prompt
        self.kv_cache_usage: float | None = None
        self.tokens_before = 0
        self.seen: list[SeenRequest] = []
        self._load = Load(self.script.concurrency)
        routes = [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/health", lambda request: Response()),
            Route("/metrics", self._metrics),
        ]
        self._host = AsgiHost(Starlette(routes=routes))

    def __enter__(self) -> Self:
        self._host.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._host.__exit__()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._host.port}/v1"

    @property
    def running(self) -> int:
        """The requests that are worked on now."""
        return self._load.running

    @property
    def peak_in_flight(self) -> int:
        """The most requests that were here at once, those that waited included."""
        return max((request.in_flight for request in self.seen), default=0)

    @property
    def billed_tokens(self) -> Counter[str]:
        """Prompt and completion tokens that the model worked for, by model."""
        return _tokens_by_model((seen.model, seen.billed) for seen in self.seen)

    @property
    def reported_tokens(self) -> Counter[str]:
        """Prompt and completion tokens that answers spoke of, by model."""
        return _tokens_by_model((seen.model, seen.reported) for seen in self.seen)

    @property
    def busy_share(self) -> float:
        """How much of its capacity was used between the first request's start and the last one's end."""
        return self._load.busy_share

    @property
    def is_up(self) -> bool:
        return self._host.is_up

    def go_down(self) -> None:
        """Dies with what is in flight and refuses connections, until ``come_up``."""
        self._host.go_down()

    def come_up(self) -> None:
        self._host.come_up()

    def prompt_tokens(self, request: ChatRequest) -> int:
        visual = sum(count(*size, self.budget) + IMAGE_FRAME_TOKENS for size in request.sizes)
        return TEMPLATE_TOKENS + text_tokens(request.system) + text_tokens(request.text) + visual

    async def _models(self, request: Request) -> Response:
        if not self._is_known(_key(request)):
            return JSONResponse({"error": "Unauthorized"}, status_code=401)
        return JSONResponse({"object": "list", "data": [{"id": self.model_id, "object": "model"}]})

    async def _metrics(self, request: Request) -> Response:
        usage = FULL_CACHE_USAGE * self._load.share if self.kv_cache_usage is None else self.kv_cache_usage
        billed = [seen.billed for seen in self.seen if seen.billed is not None]
        return PlainTextResponse(
            metrics_text(
                self.model_id,
                running=self._load.running,
                waiting=self._load.waiting,
                kv_cache_usage=usage,
                prompt_tokens=self.tokens_before + sum(usage.prompt_tokens for usage in billed),
                completion_tokens=self.tokens_before + sum(usage.completion_tokens for usage in billed),
            )
        )

    async def _chat(self, request: Request) -> Response:
        """Works until the answer is there or the client has gone."""
        chat = _chat_request(request, await request.json(), number=len(self.seen) + 1)
        work = asyncio.create_task(self._answered(chat, request.scope["transport"]))
        gone = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else Response(status_code=499)
        finally:
            work.cancel()
            gone.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _answered(self, chat: ChatRequest, transport: asyncio.Transport) -> Response:
        script, fault = self.script, self._fault(chat)
        text = answer_text(chat, fault, script)
        billed = None if fault in AT_THE_DOOR else self._usage(chat, text, fault)
        reported = None if fault in WITHOUT_ANSWER or not billed else reported_usage(billed, fault, script)
        self._remember(chat, fault, billed, reported)
        if fault in AT_THE_DOOR:
            return _refused(fault, chat, script)
        async with self._load.place():
            await asyncio.sleep(script.slow_s if fault is Fault.SLOW else script.seconds_a_request)
            return await self._outcome(fault, completion(chat, text, reported, fault), transport)

    def _fault(self, chat: ChatRequest) -> Fault | None:
        most = self.script.max_queued
        if not self._is_known(chat.key):
            return Fault.UNAUTHORISED
        if chat.model != self.model_id:
            return Fault.MODEL_NOT_FOUND
        if len(chat.images) > self.images_per_prompt:
            return Fault.TOO_MANY_IMAGES
        if any(max(size) > MAX_ASPECT_RATIO * min(size) for size in chat.sizes):
            return Fault.TOO_NARROW
        if most is not None and self._load.is_full and self._load.waiting >= most:
            return Fault.OVERLOADED
        return self.script.fault(chat)

    def _is_known(self, key: str | None) -> bool:
        return self.api_key is None or key == self.api_key

    def _usage(self, chat: ChatRequest, text: str | None, fault: Fault | None) -> TokenUsage:
        is_cut = fault in (Fault.TRUNCATED, Fault.REPETITION)
        completion_tokens = chat.max_tokens if is_cut else text_tokens(text or "") + 1
        return TokenUsage(
            prompt_tokens=self.prompt_tokens(chat), completion_tokens=completion_tokens, cached_tokens=0
        )

    def _remember(
        self, chat: ChatRequest, fault: Fault | None, billed: TokenUsage | None, reported: TokenUsage | None
    ) -> None:
        self.seen.append(
            SeenRequest(
                number=chat.number,
                request_id=chat.request_id,
                model=chat.model,
                arrived_s=time.monotonic(),
                in_flight=self._load.running + self._load.waiting + 1,
                sizes=chat.sizes,
                temperature=chat.temperature,
                max_tokens=chat.max_tokens,
                priority=chat.priority,
                fields=tuple(chat.fields),
                fault=fault,
                billed=billed,
                reported=reported,
            )
        )

    async def _outcome(
        self, fault: Fault | None, body: dict[str, object], transport: asyncio.Transport
    ) -> Response:
        match fault:
            case Fault.HANG:
                await asyncio.Event().wait()
            case Fault.DRIP:
                return StreamingResponse(_drops(), media_type="application/json")
            case Fault.RESET:
                reset(transport)
            case Fault.RESET_IN_BODY:
                return _BrokenResponse(body)
            case Fault.CRASH:
                await self._host.crash(self.script.down_s)
        return ready_response(fault) or JSONResponse(body)


class _BrokenResponse(JSONResponse):
    """Half of the body, then the connection is reset."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        half = bytes(self.body)[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        await asyncio.sleep(0.05)
        reset(scope["transport"])
        await asyncio.sleep(0)


async def _drops() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.05)


def _refused(fault: Fault | None, chat: ChatRequest, script: Script) -> Response:
    answer = refusal(fault, chat, script)
    kind = HTMLResponse if isinstance(answer.body, str) else JSONResponse
    return kind(answer.body, status_code=answer.status, headers=dict(answer.headers))


def _chat_request(request: Request, body: dict[str, Any], *, number: int) -> ChatRequest:
    said = {message["role"]: message["content"] for message in body["messages"]}
    urls = [part["image_url"]["url"] for part in said["user"] if part["type"] == "image_url"]
    images = tuple(b64decode(url.partition(",")[2]) for url in urls)
    return ChatRequest(
        number=number,
        request_id=request.headers.get("x-request-id", ""),
        key=_key(request),
        model=body["model"],
        system=said.get("system", ""),
        text="".join(part["text"] for part in said["user"] if part["type"] == "text"),
        images=images,
        sizes=tuple(_size(image) for image in images),
        temperature=body.get("temperature"),
        max_tokens=body.get("max_tokens", 1024),
        priority=body.get("priority"),
        headers=dict(request.headers),
        fields=body,
    )


def _key(request: Request) -> str | None:
    return request.headers.get("authorization", "").removeprefix("Bearer ") or None


def _size(encoded: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(encoded)) as image:
        return image.size


def _tokens_by_model(rows: Iterable[tuple[str, TokenUsage | None]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for model, usage in rows:
        if usage is not None:
            total[model] += usage.prompt_tokens + usage.completion_tokens
    return total
