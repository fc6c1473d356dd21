"""What a follower has heard is the whole of an event's id."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.api.events import Told


def told_of(pages: Iterable[int]) -> Told:
    told = Told("reading")
    for page in pages:
        told.add(page)
    return told


@given(st.lists(st.integers(min_value=1, max_value=300), max_size=200))
def test_an_id_says_what_was_heard(pages: list[int]) -> None:
    told = told_of(pages)
    assert Told.from_id(told.id) == told
    assert {page for page in range(1, 302) if told.has(page)} == set(pages)
    assert told_of(sorted(pages)) == told


def test_pages_in_a_row_are_a_range() -> None:
    assert told_of([9, 2, 1, 7, 3, 10]).id == "reading;1-3,7,9-10"


def test_pages_that_a_document_has_not_are_not_told_again() -> None:
    told = Told.from_id("reading;1-3,5-90000,90002")
    told.forget_beyond(7)
    assert told.id == "reading;1-3,5-7"


def test_a_long_id_that_somebody_made_up_is_joined() -> None:
    assert Told.from_id("reading;" + "1-60000," * 1_000).id == "reading;1-60000"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "reading;a-b",
        "reading;1-999999999",
        "reading;1-" + "9" * 30,
        "reading;5-1",
        "reading;-3",
    ],
)
def test_of_an_id_that_is_none_nothing_was_heard(text: str) -> None:
    assert Told.from_id(text).ranges == []
