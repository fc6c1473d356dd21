"""Keys of the API in the database."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from models.errors import ApiKeyNotFound, TooManyOpenDocuments
from pipeline.store import Store
from pipeline.store.api_keys import USE_NOTED_EVERY_S, ApiKeyTerms
from tests.unit.store.pool_parts import LIMITS, Pool
from tests.unit.store.upload_parts import enter_upload, new_upload

TERMS = ApiKeyTerms(name="scanner", cost_centre="harbour", scopes=("read", "submit"))


def added(store: Store, prefix: str = "aaaaaaaaaa", terms: ApiKeyTerms = TERMS) -> int:
    return store.api_keys.add(terms, prefix=prefix, secret_sha256="a" * 64)


def test_a_key_is_found_by_its_prefix_with_all_its_terms(store: Store) -> None:
    terms = replace(
        TERMS, requests_per_min=7, max_open_documents=3, max_priority=0, expires_at_s=time.time() + 60
    )
    key_id = added(store, terms=terms)
    found = store.api_keys.find("aaaaaaaaaa")
    assert found is not None
    assert (found.key_id, found.terms, found.secret_sha256) == (key_id, terms, "a" * 64)
    assert (found.revoked_at_s, found.last_used_at_s) == (None, None)
    assert "a" * 64 not in repr(found)
    assert store.api_keys.find("bbbbbbbbbb") is None


def test_a_key_holds_until_it_expires_or_is_revoked(store: Store) -> None:
    added(store, terms=replace(TERMS, expires_at_s=1_000.0))
    expired = store.api_keys.find("aaaaaaaaaa")
    assert expired is not None
    assert (expired.holds_at(999.9), expired.holds_at(1_000.0)) == (True, False)
    added(store, "bbbbbbbbbb")
    assert not store.api_keys.revoke("bbbbbbbbbb").holds_at(time.time())
    for prefix in ("aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"):
        with pytest.raises(ApiKeyNotFound, match=f"^{prefix}: "):
            store.api_keys.revoke(prefix)


def test_keys_are_listed_by_cost_centre_and_name_also_those_that_hold_no_more(store: Store) -> None:
    for prefix, cost_centre, name in (("c" * 10, "b", "x"), ("d" * 10, "a", "y"), ("e" * 10, "a", "x")):
        added(store, prefix, replace(TERMS, cost_centre=cost_centre, name=name))
    store.api_keys.revoke("e" * 10)
    assert [key.prefix[0] for key in store.api_keys.keys()] == ["e", "d", "c"]  # noqa: SIM118


def test_a_rotated_key_goes_on_under_a_new_name_and_ends_after_its_grace(store: Store) -> None:
    added(store, terms=replace(TERMS, requests_per_min=7, max_priority=8))
    began_s = time.time()
    new = store.api_keys.replace("aaaaaaaaaa", prefix="b" * 10, secret_sha256="b" * 64, grace_s=3_600)
    assert (new.prefix, new.terms) == ("b" * 10, replace(TERMS, requests_per_min=7, max_priority=8))
    old = store.api_keys.find("aaaaaaaaaa")
    assert old is not None
    assert old.terms.expires_at_s is not None
    assert began_s + 3_600 <= old.terms.expires_at_s <= time.time() + 3_600


def test_a_rotated_key_that_was_to_end_holds_for_as_long_again_and_the_old_one_no_longer_than_it_was_to(
    store: Store,
) -> None:
    ends_at_s = time.time() + 60
    added(store, terms=replace(TERMS, expires_at_s=ends_at_s))
    old = store.api_keys.find("aaaaaaaaaa")
    assert old is not None
    new = store.api_keys.replace("aaaaaaaaaa", prefix="b" * 10, secret_sha256="b" * 64, grace_s=3_600)
    assert new.terms.expires_at_s == pytest.approx(new.created_at_s + ends_at_s - old.created_at_s)
    after = store.api_keys.find("aaaaaaaaaa")
    assert after is not None
    assert after.terms.expires_at_s == ends_at_s
    store.api_keys.revoke("b" * 10)
    with pytest.raises(ApiKeyNotFound):
        store.api_keys.replace("b" * 10, prefix="c" * 10, secret_sha256="c" * 64, grace_s=0)
    assert store.api_keys.find("c" * 10) is None


def test_a_use_is_noted_once_a_minute(store: Store) -> None:
    added(store)
    unused = store.api_keys.find("aaaaaaaaaa")
    assert unused is not None
    store.api_keys.note_use(unused)
    used = store.api_keys.find("aaaaaaaaaa")
    assert used is not None
    assert used.last_used_at_s is not None
    for seen_before in (used, unused):
        store.api_keys.note_use(seen_before)
        assert store.api_keys.find("aaaaaaaaaa") == used
    long_ago_s = used.last_used_at_s - USE_NOTED_EVERY_S - 1
    set_last_use(store, used.key_id, long_ago_s)
    store.api_keys.note_use(replace(used, last_used_at_s=long_ago_s))
    again = store.api_keys.find("aaaaaaaaaa")
    assert again is not None
    assert again.last_used_at_s is not None
    assert again.last_used_at_s >= used.last_used_at_s


def set_last_use(store: Store, key_id: int, at_s: float) -> None:
    from models.api_tables import ApiKeyRow

    with store.database.write() as session:
        session.get_one(ApiKeyRow, key_id).last_used_at_s = at_s


def require_room(store: Store, key_id: int | None, most: int, cost_centre: str = "harbour") -> None:
    store.api_keys.require_room(key_id=key_id, cost_centre=cost_centre, max_open_documents=most)


def test_open_documents_count_for_their_key_and_no_longer_than_they_are_open(store: Store) -> None:
    pool, ours, theirs = Pool(store), added(store), added(store, "b" * 10)
    submissions = [pool.open() for _ in range(3)]
    for submission_id, key_id in zip(submissions, (ours, ours, theirs), strict=True):
        enter_upload(store, submission_id, key_id=key_id)
    require_room(store, ours, 3)
    with pytest.raises(
        TooManyOpenDocuments, match="2 of your documents are being read, and at most 2"
    ) as refusal:
        require_room(store, ours, 2)
    assert refusal.value.retry_after_s > 0
    store.pool.cancel(submissions[0])
    require_room(store, ours, 2)


def test_whoever_comes_without_a_key_is_counted_by_cost_centre(store: Store) -> None:
    pool, key_id = Pool(store), added(store)
    enter_upload(store, pool.open(), key_id=key_id)
    enter_upload(store, pool.open("attic"), cost_centre="attic")
    require_room(store, None, 1)
    with pytest.raises(TooManyOpenDocuments):
        require_room(store, None, 1, "attic")


def test_of_many_documents_that_come_at_once_no_more_are_taken_than_may(store: Store) -> None:
    key_id = added(store)
    refused: list[str] = []

    def accept(blob_id: str) -> None:
        upload = new_upload(blob_id=blob_id, key_id=key_id, max_open_documents=2)
        note = store.uploads.note_arriving(blob_id, "host/boot/1/1")
        try:
            store.uploads.accept(upload, arriving_blob_id=note, limits=LIMITS)
        except TooManyOpenDocuments:
            refused.append(blob_id)

    threads = [threading.Thread(target=accept, args=(digit * 64,)) for digit in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 4
