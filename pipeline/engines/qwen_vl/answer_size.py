"""A bound on what a server may send: an answer without end, or one that swells when it is unpacked, must not take
the memory of all other pages with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import httpx2

MOST_ANSWER_BYTES: Final = 16 * 2**20
"""No page's answer has so many. A refusal that quotes a whole request, images and all, has fewer, too."""

PLAIN: Final = "identity"
"""What ``Accept-Encoding`` asks for: answers are short, and a packed one can be a thousand times its size."""


class AnswerUnfit(httpx2.DecodingError):
    """The answer is not read to its end; says why, and what to do. One of httpx2's own, because openai passes on
    other errors as they are."""


async def bound_answer(response: httpx2.Response) -> None:
    """To be called before the body is read. It then raises AnswerUnfit where the body is too large; a packed one is
    refused here, because its size cannot be known."""
    packing = response.headers.get("content-encoding", PLAIN).strip().lower()
    if packing not in ("", PLAIN):
        raise AnswerUnfit(
            "the answer is packed, though it was asked for as it is; switch compression off in what stands between "
            "here and the model"
        )
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size_bytes = 0
        async for part in self._stream:
            size_bytes += len(part)
            if size_bytes > MOST_ANSWER_BYTES:
                raise AnswerUnfit(
                    f"the answer is longer than {MOST_ANSWER_BYTES // 2**20} MiB; "
                    "check that --vlm-url names a model's API"
                )
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
