"""JSON in the database: strict, and of text that both databases can hold."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.text import writable
from pipeline.store.json_text import json_text

ODD = st.text(
    alphabet=st.sampled_from(["\0", "\\", '"', "u", "0", "\n", "\ud83d", "\ude00", "\U0001f600", "é"])
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ODD
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(ODD | st.text(), inner),
)


def in_writable_text(value: Any) -> Any:
    match value:
        case str():
            return writable(value)
        case list():
            return [in_writable_text(one) for one in value]
        case dict():
            return {writable(key): in_writable_text(one) for key, one in value.items()}
        case _:
            return value


@given(VALUES)
def test_what_is_read_back_is_what_was_written_in_writable_text(value: Any) -> None:
    spelled = json_text(value)
    assert json.loads(spelled) == in_writable_text(value)
    assert spelled == writable(spelled)
    assert not any(character == "\0" for character in str(json.loads(spelled)))


@given(st.text(alphabet=st.characters()))
def test_writable_text_is_text_that_utf_8_can_hold_with_nothing_else_changed(text: str) -> None:
    clean = writable(text)
    assert clean.encode().decode() == clean
    assert len(clean) == len(text)
    assert all(new == "\ufffd" for old, new in zip(text, clean, strict=True) if old != new)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_have_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text({"confidence": [number]})
