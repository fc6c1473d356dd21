"""Addresses and keys."""

from __future__ import annotations

import pytest

from models.errors import SettingsError
from workers.client.address import checked_url, credentials


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://localhost:8321", "http://localhost:8321"),
        (" https://docs.example.org/doctriage/ ", "https://docs.example.org/doctriage"),
        ("http://[::1]:8321/", "http://[::1]:8321"),
    ],
)
def test_an_address_is_taken(given: str, url: str) -> None:
    assert checked_url(given) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8321",
        "ftp://docs.example.org",
        "http://",
        "http://host:port",
        "http://host/?key=x",
        "http://me:secret@host",
    ],
)
def test_what_is_none_is_refused_and_no_secret_shown(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        checked_url(url)
    assert "secret" not in str(refused.value)


def test_a_key_is_shown_as_one() -> None:
    assert credentials(None) == {}
    assert credentials("dt_abc_def") == {"authorization": "Bearer dt_abc_def"}


@pytest.mark.parametrize("key", ["", "two words", "line\nend", "ключ"])
def test_what_is_no_key_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(SettingsError) as refused:
        credentials(key)
    assert not key or key not in str(refused.value)
