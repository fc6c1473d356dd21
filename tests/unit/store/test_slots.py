"""Places for calls in flight, and files of watched folders."""

from __future__ import annotations

from pipeline.store import Store


def test_no_more_places_are_taken_than_there_are(store: Store) -> None:
    taken = [store.slots.acquire("vlm", 2, owner, 600) for owner in ("a", "b", "a")]
    assert taken == [1, 2, None]
    store.slots.release("vlm", 1, "b")
    assert store.slots.acquire("vlm", 2, "c", 600) is None
    store.slots.release("vlm", 1, "a")
    assert store.slots.acquire("vlm", 2, "c", 600) == 1


def test_services_have_places_of_their_own(store: Store) -> None:
    assert store.slots.acquire("one", 1, "a", 600) == 1
    assert store.slots.acquire("other", 1, "a", 600) == 1


def test_a_place_whose_lease_ran_out_is_free(store: Store) -> None:
    store.slots.acquire("vlm", 1, "a", -1)
    assert store.slots.acquire("vlm", 1, "b", 600) == 1


def test_a_service_may_be_given_more_places_and_fewer(store: Store) -> None:
    assert [store.slots.acquire("vlm", 1, "a", 600) for _ in range(2)] == [1, None]
    assert [store.slots.acquire("vlm", 3, "a", 600) for _ in range(3)] == [2, 3, None]
    store.slots.release("vlm", 3, "a")
    assert store.slots.acquire("vlm", 2, "a", 600) is None


def test_a_watched_file_is_remembered_as_it_was(store: Store) -> None:
    for byte_count in (1, 2):
        store.watched.note(
            "/in", "a.pdf", byte_count=byte_count, mtime_ns=5, outcome="submitted", submission_id=None
        )
    store.watched.note("/other", "a.pdf", byte_count=9, mtime_ns=5, outcome="refused", submission_id=None)
    [found] = store.watched.seen("/in").values()
    assert (found.name, found.byte_count, found.outcome) == ("a.pdf", 2, "submitted")
    store.watched.forget("/in", "a.pdf")
    assert store.watched.seen("/in") == {}
    assert len(store.watched.seen("/other")) == 1
