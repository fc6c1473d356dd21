"""What a server says, read with tolerance and quoted with care."""

from __future__ import annotations

import contextlib
import json
import ssl
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import VlmBadResponse, VlmConnectionLost, VlmError, VlmTimedOut, VlmUnreachable
from models.transcription import TokenUsage
from pipeline.engines.qwen_vl.endpoint import VlmEndpoint
from pipeline.engines.qwen_vl.faults import translated, wanted_pause_s
from pipeline.engines.qwen_vl.replies import reply_from, usage_from
from pipeline.engines.qwen_vl.wording import LONGEST, shown_text, words_of

KEY = "sk-1234567890"
ENDPOINT = VlmEndpoint(base_url="https://gpu.test/v1", model_id="qwen", api_key=KEY)
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=8), values, max_size=3),
    max_leaves=12,
)


def usage_dict(**changes: object) -> dict[str, object]:
    usage: dict[str, object] = {"prompt_tokens": 1300, "completion_tokens": 90, "total_tokens": 1390}
    return usage | changes


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (usage_dict(), TokenUsage(prompt_tokens=1300, completion_tokens=90)),
        (usage_dict(completion_tokens=0), TokenUsage(prompt_tokens=1300, completion_tokens=0)),
        (usage_dict(prompt_tokens=1300.0), TokenUsage(prompt_tokens=1300, completion_tokens=90)),
        (
            usage_dict(
                prompt_tokens_details={"cached_tokens": 80}, completion_tokens_details={"reasoning_tokens": 7}
            ),
            TokenUsage(prompt_tokens=1300, completion_tokens=90, cached_tokens=80, reasoning_tokens=7),
        ),
        (
            usage_dict(prompt_tokens_details={"cached_tokens": 1301}, completion_tokens_details=None),
            TokenUsage(prompt_tokens=1300, completion_tokens=90),
        ),
        (None, None),
        ({}, None),
        ("1300", None),
        (usage_dict(prompt_tokens=0), None),
        (usage_dict(prompt_tokens=-5), None),
        (usage_dict(prompt_tokens="1300"), None),
        (usage_dict(prompt_tokens=True), None),
        (usage_dict(completion_tokens=None), None),
        (usage_dict(completion_tokens=float("nan")), None),
        (usage_dict(prompt_tokens=float("inf")), None),
    ],
)
def test_usage(usage: object, expected: TokenUsage | None) -> None:
    assert usage_from(usage) == expected


@given(
    document=json_values
    | st.fixed_dictionaries({"choices": json_values, "usage": json_values, "model": json_values})
    | st.fixed_dictionaries(
        {"choices": st.lists(st.fixed_dictionaries({"message": json_values}), max_size=2)}
    )
    | st.fixed_dictionaries(
        {
            "choices": st.lists(
                st.fixed_dictionaries({"message": st.fixed_dictionaries({"content": json_values})})
            )
        }
    )
)
def test_whatever_comes_is_a_reply_or_a_bad_response(document: object) -> None:
    with contextlib.suppress(VlmBadResponse):
        reply = reply_from(json.dumps(document).encode(), endpoint=ENDPOINT, elapsed_s=1.0)
        assert reply.text.encode() is not None
        assert reply.model_id


@given(body=st.binary(max_size=200))
def test_bytes_that_are_no_completion_are_a_bad_response(body: bytes) -> None:
    with pytest.raises(VlmBadResponse):
        reply_from(body, endpoint=ENDPOINT, elapsed_s=1.0)


def test_control_characters_in_an_answer_are_no_fault() -> None:
    body = b'{"choices": [{"message": {"content": "one\ntwo\ttabbed"}}]}'
    assert reply_from(body, endpoint=ENDPOINT, elapsed_s=1.0).text == "one\ntwo\ttabbed"


def test_half_a_surrogate_pair_is_replaced() -> None:
    body = rb'{"model": "m\ud83d", "choices": [{"message": {"content": "a\ud83d b \ud83d\ude00"}}]}'
    reply = reply_from(body, endpoint=ENDPOINT, elapsed_s=1.0)
    assert (reply.text, reply.model_id) == ("a\ufffd b \U0001f600", "m\ufffd")


@given(name=st.text())
def test_names_are_short_lines_whatever_the_server_calls_itself(name: str) -> None:
    name = f"{name}\0{KEY}" * 40
    body = json.dumps({"model": name, "choices": [{"message": {}, "finish_reason": name}]}).encode()
    reply = reply_from(body, endpoint=ENDPOINT, elapsed_s=1.0)
    for told in (reply.model_id, reply.finish_reason or ""):
        assert len(told) <= LONGEST
        assert told.isprintable()
        assert KEY not in told


@pytest.mark.parametrize("said", [None, "", "\0\n", 7])
def test_a_server_that_does_not_name_its_model_has_the_one_asked_for(said: object) -> None:
    body = json.dumps({"model": said, "choices": [{"message": {}}]}).encode()
    assert reply_from(body, endpoint=ENDPOINT, elapsed_s=1.0).model_id == ENDPOINT.model_id


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, 9.0),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=30), usegmt=True)}, 30.0),
        ({"Retry-After": format_datetime(NOW - timedelta(seconds=30), usegmt=True)}, 0.0),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:07"}, 7.0),
        ({"Retry-After": "Mon, 99 Nov 2026 12:00:07 GMT"}, None),
        (
            {
                "Date": format_datetime(NOW + timedelta(hours=3), usegmt=True),
                "Retry-After": format_datetime(NOW + timedelta(hours=3, seconds=4), usegmt=True),
            },
            4.0,
        ),
    ],
)
def test_the_pause_that_headers_ask_for(headers: dict[str, str], expected_s: float | None) -> None:
    assert wanted_pause_s(httpx2.Headers(headers), now=NOW) == expected_s


@given(text=st.text())
def test_headers_of_any_kind_ask_for_a_pause_or_for_none(text: str) -> None:
    headers = {"retry-after": text, "retry-after-ms": text, "date": text}
    pause_s = wanted_pause_s(headers, now=NOW)
    assert pause_s is None or pause_s >= 0


@given(
    before=st.text(max_size=400),
    after=st.text(max_size=400),
    image=st.binary(min_size=120, max_size=3000),
    prefix=st.sampled_from(["", "data:image/png;base64,", "DATA:IMAGE/JPEG;BASE64,"]),
)
def test_what_is_shown_is_one_short_line_without_key_and_image(
    before: str, after: str, image: bytes, prefix: str
) -> None:
    encoded = b64encode(image).decode()
    shown = shown_text(f"{before} {prefix}{encoded} {KEY}{after}", ENDPOINT)
    assert len(shown) <= LONGEST
    assert shown.isprintable()
    assert KEY not in shown
    assert encoded[:100] not in shown


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", ""),
        (b'{"error": {"message": "no room"}}', "no room"),
        (b'{"error": "no room"}', "no room"),
        (b'{"object": "error", "message": "no room"}', "no room"),
        (b'{"detail": "no room"}', "no room"),
        (b'{"detail": [{"loc": ["body"], "msg": "no room"}]}', "no room"),
        (b'{"reason": "no room"}', '{"reason": "no room"}'),
        (b"no\n room", "no room"),
        (
            b"<!DOCTYPE html><html><head><title>503\n Busy</title></head></html>",
            "a web page titled “503 Busy”",
        ),
        (b"<html><body>busy</body></html>", "a web page"),
        (b"\xff\xfeno room", "��no room"),
        (b"[" * 50_000, "[" * (LONGEST - 1) + "…"),
    ],
)
def test_a_servers_words(body: bytes, words: str) -> None:
    assert words_of(body, ENDPOINT) == words


def test_a_certificate_that_is_not_trusted_can_be_named() -> None:
    refusal = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    error = openai.APIConnectionError(request=httpx2.Request("POST", "https://gpu.test/v1"))
    error.__cause__ = httpx2.ConnectError("")
    error.__cause__.__cause__ = refusal
    message = str(translated(error, ENDPOINT))
    assert "self-signed certificate" in message
    assert "SSL_CERT_FILE" in message


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (httpx2.ConnectError("All connection attempts failed"), VlmUnreachable),
        (httpx2.ConnectTimeout("too long"), VlmUnreachable),
        (httpx2.ProxyError("407 Proxy Authentication Required"), VlmUnreachable),
        (httpx2.ReadTimeout("too long"), VlmTimedOut),
        (httpx2.WriteTimeout("too long"), VlmTimedOut),
        (httpx2.ReadError(""), VlmConnectionLost),
        (httpx2.WriteError(""), VlmConnectionLost),
        (httpx2.RemoteProtocolError("Server disconnected without sending a response."), VlmConnectionLost),
        (httpx2.DecodingError("Error -3 while decompressing data"), VlmBadResponse),
    ],
)
def test_errors_of_the_connection(cause: Exception, kind: type[VlmError]) -> None:
    request = httpx2.Request("POST", "https://gpu.test/v1/chat/completions")
    is_timeout = isinstance(cause, httpx2.TimeoutException)
    error = openai.APITimeoutError(request) if is_timeout else openai.APIConnectionError(request=request)
    error.__cause__ = cause
    ours = translated(error, ENDPOINT)
    assert type(ours) is kind
    if kind is not VlmTimedOut:
        assert (str(cause) or type(cause).__name__) in str(ours)
