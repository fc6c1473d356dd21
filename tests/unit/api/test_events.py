"""What a follower has heard is the whole of an event's id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.api.events import Told


@given(st.sets(st.integers(min_value=1, max_value=5_000), max_size=200))
def test_an_id_says_what_was_heard(pages: set[int]) -> None:
    told = Told("reading", pages)
    assert Told.from_id(told.id) == told


def test_pages_in_a_row_are_a_range() -> None:
    assert Told("reading", {1, 2, 3, 7, 9, 10}).id == "reading;1-3,7,9-10"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "reading;a-b",
        "reading;1-999999999",
        "reading;1-" + "9" * 30,
        "reading;" + "1-60000," * 1_000,
    ],
)
def test_of_an_id_that_is_none_nothing_was_heard(text: str) -> None:
    assert Told.from_id(text).pages == set()
