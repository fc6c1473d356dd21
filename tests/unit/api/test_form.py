"""Forms as they arrive, in pieces of any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import BodyMalformed, BodyUnsupported, RequestInvalid, TooManyBytes
from workers.api.form import MOST_PARTS, FormParser, boundary_of

FILE = b'--b\r\nContent-Disposition: form-data; name="file"; filename="inv.pdf"\r\n\r\n'
FIELD = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
END = b"\r\n--b--\r\n"


def parsed(body: bytes, *, piece: int = 10_000, most: int = 1_000) -> tuple[FormParser, bytes]:
    parser, taken = FormParser(b"b", most), b""
    for start in range(0, len(body), piece):
        parser.feed(body[start : start + piece])
        taken += parser.taken()
    parser.end()
    return parser, taken


@given(content=st.binary(max_size=900).filter(lambda one: b"\r\n--b" not in one), piece=st.integers(1, 50))
def test_a_file_comes_through_as_it_is(content: bytes, piece: int) -> None:
    parser, taken = parsed(FIELD % (b"priority", b"3") + FILE + content + END, piece=piece)
    assert (parser.file_name, taken) == ("inv.pdf", content)
    assert parser.fields == {"priority": "3"}


def test_a_file_that_is_too_large_is_refused_at_the_first_byte_too_many() -> None:
    parser = FormParser(b"b", 1_000)
    parser.feed(FILE + b"x" * 1_000)
    with pytest.raises(TooManyBytes):
        parser.feed(b"x")


@pytest.mark.parametrize(
    "body",
    [b"", b"x", FILE, FILE + b"content", FILE + b"content\r\n--b", FIELD % (b"a", b"b")],
)
def test_a_form_that_ends_too_soon_is_none(body: bytes) -> None:
    with pytest.raises(BodyMalformed):
        parsed(body)


def test_a_boundary_that_is_too_long_makes_no_form() -> None:
    with pytest.raises(BodyMalformed):
        FormParser(b"b" * 5_000, 1_000).feed(FILE)


@pytest.mark.parametrize(
    "body",
    [
        FIELD % (b"a", b"b") + END[2:],
        FILE + b"1" + b"\r\n" + FILE + b"2" + END,
        FIELD % (b"a", b"1") + FIELD % (b"a", b"2") + FILE + END,
        FIELD % (b"a", b"\xff") + FILE + END,
        b"".join(FIELD % (b"a%d" % number, b"1") for number in range(MOST_PARTS)) + FILE + END,
        FIELD % (b"a", b"x" * 70_000) + FILE + END,
        FILE.replace(b'"file"', b'"other"') + b"1" + END,
    ],
    ids=["no file", "two files", "a field twice", "no UTF-8", "many fields", "a large field", "another file"],
)
def test_a_form_that_is_not_what_is_asked_for_is_refused(body: bytes) -> None:
    with pytest.raises(RequestInvalid):
        parsed(body)


@pytest.mark.parametrize(
    "content_type", [None, "", "application/json", "multipart/form-data", "multipart/mixed; boundary=b"]
)
def test_a_body_of_another_kind_is_not_taken(content_type: str | None) -> None:
    with pytest.raises(BodyUnsupported):
        boundary_of(content_type)


def test_a_boundary_may_be_quoted() -> None:
    assert boundary_of('multipart/form-data; charset=utf-8; boundary="a b"') == b"a b"
