"""What a document may be called, and what a file's path becomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.document_name import MOST_NAME_BYTES, fault_of_name, fitted_name, last_part


@pytest.mark.parametrize(
    "name",
    ["scan.pdf", "a/scan.pdf", ".hidden/a (2).pdf", "Straße/Überblick 5.00\u202fPM.pdf", "a/…/b", "C:/a"],
)
def test_paths_below_a_folder_are_names(name: str) -> None:
    assert fault_of_name(name) is None
    assert fitted_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "..",
        "a/../b.pdf",
        "./a.pdf",
        "a//b.pdf",
        "a/",
        " /b.pdf",
        "a\\b.pdf",
        "a\x00.pdf",
        "a\r\nb.pdf",
        "a\u2028b.pdf",
        "\x1b[2J.pdf",
        "a\u202efdp.exe",
        "\u2067a.pdf",
        "\udcff.pdf",
        "é" * 101,
        "/".join(["x" * 199] * 6),
    ],
)
def test_anything_else_is_none(name: str) -> None:
    assert fault_of_name(name) is not None


@given(st.lists(st.text(st.characters(exclude_characters="/", codec=None), max_size=300), max_size=12))
def test_whatever_a_file_is_called_it_can_be_sent(parts: list[str]) -> None:
    fitted = fitted_name("/".join(parts))
    assert fault_of_name(fitted) is None
    assert last_part(fitted)


def test_of_a_path_that_is_too_long_the_parts_nearest_to_the_file_stay() -> None:
    path = "/".join([f"{number}{'x' * 120}" for number in range(10)] + ["scan.pdf"])
    fitted = fitted_name(path)
    assert path.endswith(f"/{fitted}")
    assert MOST_NAME_BYTES - 130 < len(fitted) <= MOST_NAME_BYTES
