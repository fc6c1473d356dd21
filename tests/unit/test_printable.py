"""Names from files cannot act on the terminal."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.cli.printable import printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain.pdf", "plain.pdf"),
        ("Übersicht 報告.pdf", "Übersicht 報告.pdf"),
        ("[red]x[/red].pdf", "[red]x[/red].pdf"),
        ("bell\x07\x1b[31mred", "bell\\x07\\x1b[31mred"),
        ("two\nlines\rback\ttab", "two\\x0alines\\x0dback\\x09tab"),
        ("fdp.\u202egpj", "fdp.\\u202egpj"),
        (os.fsdecode(b"na\xefve.pdf"), "na\\xefve.pdf"),
        ("\ud800", "\\ud800"),
        ("c1\x9b31m", "c1\\x9b31m"),
    ],
)
def test_shows_a_name_without_acting_on_it(name: str, shown: str) -> None:
    assert printable(name) == shown


@given(st.text(st.characters()))
def test_whatever_the_name_the_result_is_one_printable_encodable_line(name: str) -> None:
    assert printable(name).isprintable()
    assert printable(name).encode("utf-8").decode("utf-8") == printable(name)


@given(st.binary(max_size=40))
def test_any_bytes_of_a_file_name_can_be_shown(name: bytes) -> None:
    shown = printable(os.fsdecode(name))
    assert shown.encode("utf-8").decode("utf-8") == shown
