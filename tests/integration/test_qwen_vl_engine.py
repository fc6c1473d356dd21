"""The engine against a service that does all that a service can do wrong, over real sockets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache

import pytest

from models.errors import (
    SettingsError,
    VlmBadResponse,
    VlmConnectionLost,
    VlmError,
    VlmModelNotFound,
    VlmOverloaded,
    VlmRateLimited,
    VlmRequestRefused,
    VlmServerError,
    VlmTimedOut,
    VlmUnauthorised,
    VlmUnreachable,
)
from pipeline.engines.qwen_vl import NO_THINKING, VlmEndpoint
from tests.fakes.vlm_script import (
    AT_THE_DOOR,
    WITHOUT_ANSWER,
    always,
    first,
    numbered,
)
from tests.fakes.vlm_server import FakeVlm, Fault, Script
from tests.integration.vlm_calls import (
    KEY,
    engine_for,
    fitted_image,
    request_for,
    transcribed,
    until,
)

ERRORS: dict[Fault, type[VlmError]] = {
    Fault.RATE_LIMITED: VlmRateLimited,
    Fault.RATE_LIMITED_IN_MS: VlmRateLimited,
    Fault.RATE_LIMITED_UNTIL: VlmRateLimited,
    Fault.RATE_LIMITED_SILENTLY: VlmRateLimited,
    Fault.OVERLOADED: VlmOverloaded,
    Fault.UNAUTHORISED: VlmUnauthorised,
    Fault.FORBIDDEN: VlmUnauthorised,
    Fault.MODEL_NOT_FOUND: VlmModelNotFound,
    Fault.UNKNOWN_PARAMETER: VlmRequestRefused,
    Fault.TOO_MANY_IMAGES: VlmRequestRefused,
    Fault.TOO_NARROW: VlmRequestRefused,
    Fault.TOO_LONG: VlmRequestRefused,
    Fault.TOO_LARGE: VlmRequestRefused,
    Fault.MOVED: VlmRequestRefused,
    Fault.ECHO: VlmRequestRefused,
    Fault.HANG: VlmTimedOut,
    Fault.DRIP: VlmTimedOut,
    Fault.SERVER_ERROR: VlmServerError,
    Fault.BAD_GATEWAY: VlmServerError,
    Fault.RESET: VlmConnectionLost,
    Fault.RESET_IN_BODY: VlmConnectionLost,
    Fault.CRASH: VlmConnectionLost,
    Fault.INVALID_JSON: VlmBadResponse,
    Fault.WEB_PAGE: VlmBadResponse,
    Fault.NO_CHOICES: VlmBadResponse,
    Fault.ERROR_IN_SUCCESS: VlmBadResponse,
}
NEEDS_PATIENCE = {Fault.HANG, Fault.DRIP}

HONEST = "# Harbour log\n\nThe page measures 840 by 1176."
ANSWERS: dict[Fault, tuple[str, str]] = {
    # what the text begins with, and why the model stopped
    Fault.SLOW: (HONEST, "stop"),
    Fault.TRUNCATED: ("# Harbour log", "length"),
    Fault.REPETITION: (HONEST, "length"),
    Fault.LIE: ("# Minutes of the chess club", "stop"),
    Fault.EMPTY: ("", "stop"),
    Fault.CONTENT_NONE: ("", "stop"),
    Fault.REFUSAL: ("I'm sorry", "stop"),
    Fault.REFUSAL_APART: ("I can't help with that.", "stop"),
    Fault.CHAT: ("Sure! Here is", "stop"),
    Fault.PROMPT_ECHO: ("You copy pages.", "stop"),
    Fault.FENCE: ("```markdown\n# Harbour", "stop"),
    Fault.WRONG_SCRIPT: ("这一页", "stop"),
    Fault.BROKEN_TABLE: (HONEST, "stop"),
    Fault.CONTENT_FILTERED: ("# Harbour log\n\nThe p", "content_filter"),
    Fault.CONTENT_PARTS: (HONEST, "stop"),
    Fault.NO_USAGE: (HONEST, "stop"),
    Fault.ZERO_USAGE: (HONEST, "stop"),
    Fault.WRONG_BILL: (HONEST, "stop"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    error: VlmError
    base_url: str


@cache
def failure(fault: Fault) -> Failure:
    """How a call ends that meets ``fault``, after it was seen to be made exactly once."""
    patience_s = 4.0 if fault in NEEDS_PATIENCE else 20.0
    with FakeVlm(Script(fault=always(fault), down_s=0.01)) as fake:
        with pytest.raises(VlmError) as caught:
            transcribed(
                fake,
                request_for(fitted_image(560, 560, noisy=True)),
                answer_timeout_s=patience_s,
                extra_body=dict(NO_THINKING),
                send_priority=True,
            )
        assert [seen.fault for seen in fake.seen] == [fault]
        return Failure(error=caught.value, base_url=fake.base_url)


def test_every_fault_is_tried() -> None:
    assert set(ERRORS) == AT_THE_DOOR | WITHOUT_ANSWER
    assert set(ERRORS) | set(ANSWERS) == set(Fault)


@pytest.mark.parametrize("fault", ERRORS)
def test_a_fault_has_its_error_and_is_not_tried_again(fault: Fault) -> None:
    assert type(failure(fault).error) is ERRORS[fault]


@pytest.mark.parametrize("fault", ERRORS)
def test_a_message_is_short_and_tells_neither_key_nor_page(fault: Fault) -> None:
    message = str(failure(fault).error)
    assert message.startswith(f"{failure(fault).base_url}: ")
    assert KEY not in message
    assert KEY[-4:] not in message
    assert "base64" not in message
    assert all(len(word) < 100 for word in message.split())
    assert len(message) < 600
    assert message.isprintable()


@pytest.mark.parametrize("fault", ANSWERS)
def test_an_answer_comes_as_it_is(fault: Fault) -> None:
    with FakeVlm(Script(fault=always(fault))) as fake:
        reply = transcribed(fake)
        (seen,) = fake.seen
    text, finish_reason = ANSWERS[fault]
    assert reply.text.startswith(text)
    assert bool(reply.text) == bool(text)
    assert reply.finish_reason == finish_reason
    assert reply.model_id == fake.model_id
    assert reply.elapsed_s > 0
    assert reply.usage == (None if fault in (Fault.NO_USAGE, Fault.ZERO_USAGE) else seen.reported)


@pytest.mark.parametrize(
    ("fault", "retry_after_s"),
    [
        (Fault.RATE_LIMITED, 2.0),
        (Fault.RATE_LIMITED_IN_MS, 2.0),
        (Fault.RATE_LIMITED_UNTIL, 2.0),
        (Fault.RATE_LIMITED_SILENTLY, None),
        (Fault.OVERLOADED, None),
    ],
)
def test_the_pause_that_the_server_asks_for_is_told(fault: Fault, retry_after_s: float | None) -> None:
    assert failure(fault).error.retry_after_s == retry_after_s


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (
            Fault.UNKNOWN_PARAMETER,
            "chat_template_kwargs and priority, set DOCTRIAGE_VLM__SEND_VLLM_OPTIONS=false",
        ),
        (Fault.TOO_MANY_IMAGES, "--limit-mm-per-prompt"),
        (Fault.TOO_LONG, "--max-model-len"),
        (Fault.TOO_LARGE, "request size"),
        (Fault.MOVED, "https://other.test/v1; correct --vlm-url"),
        (Fault.TOO_NARROW, "doctriage plan"),
        (Fault.MODEL_NOT_FOUND, "correct --vlm-model"),
        (Fault.UNAUTHORISED, "DOCTRIAGE_VLM__API_KEY"),
        (Fault.BAD_GATEWAY, "a web page titled “502 Bad Gateway”"),
        (Fault.WEB_PAGE, "a web page titled “Welcome to nginx!”"),
        (Fault.ERROR_IN_SUCCESS, "upstream gave up"),
        (Fault.HANG, "DOCTRIAGE_VLM__TIMEOUT_S"),
    ],
)
def test_a_message_says_what_to_do(fault: Fault, remedy: str) -> None:
    assert remedy in str(failure(fault).error)


def test_a_parameter_that_was_not_sent_is_not_blamed() -> None:
    with FakeVlm(Script(fault=always(Fault.UNKNOWN_PARAMETER))) as fake:
        with pytest.raises(VlmRequestRefused) as caught:
            transcribed(fake)
        assert "SEND_VLLM_OPTIONS" not in str(caught.value)


def test_a_service_that_is_down_is_unreachable_and_comes_back() -> None:
    with FakeVlm() as fake:
        fake.go_down()
        with pytest.raises(VlmUnreachable, match=r"Connection refused.*start the VLM service"):
            transcribed(fake)
        fake.come_up()
        assert transcribed(fake).text
        assert len(fake.seen) == 1


def test_a_host_that_does_not_exist_is_unreachable() -> None:
    with FakeVlm() as fake, pytest.raises(VlmUnreachable, match=r"http://nowhere\.invalid/v1: no connection"):
        transcribed(fake, base_url="http://nowhere.invalid/v1")


def test_tls_spoken_to_a_server_without_it_is_unreachable() -> None:
    with FakeVlm() as fake, pytest.raises(VlmUnreachable):
        transcribed(fake, base_url=fake.base_url.replace("http:", "https:"))


def test_a_server_that_closes_without_a_word_has_lost_the_connection() -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.close()

    async def call() -> None:
        server = await asyncio.start_server(close, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        engine = engine_for(fake, base_url=f"http://127.0.0.1:{port}/v1")
        try:
            await engine.transcribe(request_for())
        finally:
            await engine.close()
            server.close()
            await server.wait_closed()

    with FakeVlm() as fake, pytest.raises(VlmConnectionLost):
        asyncio.run(call())


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.RESET, Fault.RESET_IN_BODY, Fault.CRASH])
def test_a_connection_that_broke_costs_only_its_own_call(fault: Fault) -> None:
    """vLLM resets a kept connection after some of its errors; the next call must not suffer."""

    async def calls(fake: FakeVlm) -> list[str]:
        engine, ends = engine_for(fake), []
        for _ in range(3):
            try:
                ends.append((await engine.transcribe(request_for())).finish_reason or "")
            except VlmError as error:
                ends.append(error.code)
            await until(lambda: fake.is_up)
        await engine.close()
        return ends

    with FakeVlm(Script(fault=numbered({2: fault}), down_s=0.01)) as fake:
        assert asyncio.run(calls(fake)) == ["stop", ERRORS[fault].code, "stop"]
        assert len(fake.seen) == 3


def test_a_dead_service_comes_back_by_itself() -> None:
    with FakeVlm(Script(fault=first(1, Fault.CRASH), down_s=4.0)) as fake:
        ends = [call_end(fake), call_end(fake)]
        assert ends == ["vlm_connection_lost", "vlm_unreachable"]
        while (end := call_end(fake)) != "answered":
            assert end == "vlm_unreachable"
        assert len(fake.seen) == 2


def call_end(fake: FakeVlm) -> str:
    try:
        transcribed(fake)
    except VlmError as error:
        return error.code
    return "answered"


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "127.0.0.1:8000/v1"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "http:///v1"},
        {"base_url": "http://host:99999/v1"},
        {"base_url": "http://name:secret@host/v1"},
        {"api_key": ""},
        {"api_key": "two\nlines"},
        {"api_key": "schlüssel-geheim"},
    ],
)
def test_what_cannot_be_an_endpoint_is_refused_before_any_call(options: dict[str, str]) -> None:
    with FakeVlm() as fake, pytest.raises(SettingsError) as caught:
        transcribed(fake, request_for(), **options)
    assert "secret" not in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert fake.seen == []


def test_an_endpoint_does_not_show_its_key() -> None:
    assert KEY not in repr(VlmEndpoint(base_url="http://host/v1", model_id="m", api_key=KEY))
