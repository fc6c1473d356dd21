"""Keys of the API: their spelling, and who is let in by one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from models.errors import CredentialsRefused
from pipeline.store import Store, open_store
from pipeline.store.api_keys import ApiKeyTerms
from workers.api_keys import create_key, new_key, parsed_key, require_key, rotate_key

TERMS = ApiKeyTerms(name="scanner", cost_centre="harbour", scopes=("read",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def test_a_key_reads_back_as_it_was_written_and_shows_its_secret_nowhere_else() -> None:
    key = new_key()
    assert parsed_key(key.text) == key
    assert key.text == f"dt_{key.prefix}_{key.secret}"
    assert len(key.secret) >= 43
    assert key.secret not in repr(key)
    assert key.secret not in key.secret_sha256
    assert len({new_key().text for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "text", ["", "dt_", "dt_aaaaaaaaaa_short", "xx_aaaaaaaaaa_" + "b" * 43, "dt_AAAAAAAAAA_" + "b" * 43]
)
def test_what_is_spelled_otherwise_is_no_key(text: str) -> None:
    assert parsed_key(text) is None


@pytest.mark.parametrize("change", [" {}", "{} ", "{}b", "{}\n"])
def test_a_key_with_something_around_it_is_none(change: str) -> None:
    assert parsed_key(change.format(new_key().text)) is None


def test_the_right_key_is_let_in_and_its_use_noted(store: Store) -> None:
    key = create_key(store.api_keys, TERMS)
    record = require_key(store.api_keys, key.text)
    assert (record.prefix, record.terms) == (key.prefix, TERMS)
    noted = store.api_keys.find(key.prefix)
    assert noted is not None
    assert noted.last_used_at_s is not None


def test_a_wrong_secret_an_unknown_prefix_and_no_key_at_all_are_refused_in_the_same_words(
    store: Store,
) -> None:
    key = create_key(store.api_keys, TERMS)
    store.api_keys.revoke(create_key(store.api_keys, TERMS).prefix)
    refusals = set()
    for shown in (replace(key, secret="b" * 43).text, new_key().text, "nonsense"):
        with pytest.raises(CredentialsRefused) as refusal:
            require_key(store.api_keys, shown)
        refusals.add(str(refusal.value))
    assert len(refusals) == 1
    unused = store.api_keys.find(key.prefix)
    assert unused is not None
    assert unused.last_used_at_s is None


def test_whoever_has_the_secret_is_told_why_it_holds_no_more(store: Store) -> None:
    revoked = create_key(store.api_keys, TERMS)
    store.api_keys.revoke(revoked.prefix)
    expired = create_key(store.api_keys, replace(TERMS, expires_at_s=time.time() - 1))
    for key, word in ((revoked, "was revoked"), (expired, "expired")):
        with pytest.raises(CredentialsRefused, match=f"{key.prefix} {word}"):
            require_key(store.api_keys, key.text)
        with pytest.raises(CredentialsRefused, match="no such key"):
            require_key(store.api_keys, replace(key, secret="b" * 43).text)


def test_a_rotated_key_and_its_successor_are_both_let_in_until_the_grace_is_over(store: Store) -> None:
    old = create_key(store.api_keys, TERMS)
    new, record = rotate_key(store.api_keys, old.prefix, grace_s=60)
    assert (record.prefix, record.terms) == (new.prefix, TERMS)
    assert {require_key(store.api_keys, key.text).terms.name for key in (old, new)} == {"scanner"}
    newest, _ = rotate_key(store.api_keys, new.prefix, grace_s=0)
    require_key(store.api_keys, newest.text)
    with pytest.raises(CredentialsRefused, match="expired"):
        require_key(store.api_keys, new.text)
