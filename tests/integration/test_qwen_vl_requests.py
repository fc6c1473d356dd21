"""What the engine sends, many calls at once, and calls that are given up."""

from __future__ import annotations

import asyncio
from base64 import b64encode

import pytest

from models.errors import VlmError
from pipeline.engines.qwen_vl import NO_KEY, NO_THINKING
from tests.fakes.vlm_script import ChatRequest, always
from tests.fakes.vlm_server import FakeVlm, Fault, Script
from tests.integration.vlm_calls import KEY, PROMPT, engine_for, fitted_image, request_for, transcribed, until


def recorded(**options: object) -> list[ChatRequest]:
    """Two calls for equal pages, as they arrive."""
    arrived: list[ChatRequest] = []

    def note(request: ChatRequest) -> Fault | None:
        arrived.append(request)
        return None

    with FakeVlm(Script(fault=note)) as fake:
        for attempt in (1, 2):
            transcribed(fake, request_for(fitted_image(), request_id=f"d1/7/{attempt}"), **options)
    return arrived


def test_what_is_sent() -> None:
    chat, again = recorded()
    assert [message["role"] for message in chat.fields["messages"]] == ["system", "user"]  # type: ignore[attr-defined]
    assert (chat.system, chat.text) == (PROMPT.system, "Copy 1 page(s).")
    parts = chat.fields["messages"][1]["content"]  # type: ignore[index]
    assert [part["type"] for part in parts] == ["image_url", "text"]
    assert (
        parts[0]["image_url"]["url"] == "data:image/png;base64," + b64encode(fitted_image().encoded).decode()
    )
    assert set(chat.fields) == {"model", "messages", "temperature", "max_tokens", "stream"}
    assert (chat.temperature, chat.max_tokens, chat.fields["stream"]) == (0.0, 256, False)
    assert (chat.request_id, again.request_id) == ("d1/7/1", "d1/7/2")
    assert chat.fields == again.fields, "equal pages make equal prompts, for the prefix cache"
    assert chat.key == KEY


def test_options_beyond_the_protocol_are_sent_where_they_are_wanted() -> None:
    chat, _ = recorded(send_priority=True, extra_body=dict(NO_THINKING))
    assert chat.priority == 3
    assert chat.fields["chat_template_kwargs"] == {"enable_thinking": False}


def test_several_images_come_in_order_before_the_text() -> None:
    sizes = [(560, 560), (840, 588), (588, 812)]
    with FakeVlm() as fake:
        transcribed(fake, request_for(*(fitted_image(*size) for size in sizes)))
        assert list(fake.seen[0].sizes) == sizes


def test_nothing_of_an_openai_account_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-somebody")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://nowhere.invalid/v1")
    (chat, _) = recorded(api_key=NO_KEY)
    assert chat.key == NO_KEY
    assert "somebody" not in str(chat.headers)


def test_a_proxy_is_not_asked_for_a_service_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://nowhere.invalid:3128")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with FakeVlm() as fake:
        assert transcribed(fake).text


def test_a_call_that_is_given_up_frees_the_service() -> None:
    async def give_up(fake: FakeVlm) -> None:
        engine = engine_for(fake)
        call = asyncio.create_task(engine.transcribe(request_for()))
        await until(lambda: fake.running == 1)
        call.cancel()
        await until(lambda: fake.running == 0)
        await asyncio.gather(call, return_exceptions=True)
        await engine.close()

    with FakeVlm(Script(fault=always(Fault.HANG))) as fake:
        asyncio.run(give_up(fake))


def test_many_calls_at_once_share_an_engine() -> None:
    async def all_at_once(fake: FakeVlm) -> list[str]:
        engine = engine_for(fake)
        requests = [request_for(fitted_image(28 * side, 560)) for side in range(20, 44)]
        replies = await asyncio.gather(*(engine.transcribe(request) for request in requests))
        await engine.close()
        return [reply.text for reply in replies]

    with FakeVlm(Script(concurrency=4, seconds_a_request=0.02)) as fake:
        texts = asyncio.run(all_at_once(fake))
        assert fake.peak_in_flight > 4
    assert all(
        f"measures {28 * side} by 560" in text for side, text in zip(range(20, 44), texts, strict=True)
    )


def test_a_full_queue_is_an_overloaded_service() -> None:
    async def all_at_once(fake: FakeVlm) -> list[str]:
        engine = engine_for(fake)
        ends = await asyncio.gather(
            *(engine.transcribe(request_for()) for _ in range(6)), return_exceptions=True
        )
        await engine.close()
        return sorted(end.code if isinstance(end, VlmError) else "answered" for end in ends)

    with FakeVlm(Script(concurrency=1, max_queued=2, seconds_a_request=2.0)) as fake:
        assert asyncio.run(all_at_once(fake)) == ["answered"] * 3 + ["vlm_overloaded"] * 3
