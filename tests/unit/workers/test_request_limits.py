"""How often somebody may ask, counted in this process."""

from __future__ import annotations

import pytest
from limits.errors import StorageError
from limits.storage import MemoryStorage

from models.errors import TooManyRequests
from pipeline.settings import load_settings
from workers.api.limits import RequestLimits, RequestRoom, request_limits


class AwayStorage(MemoryStorage):
    """As Redis is when nobody answers."""

    asked = 0

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        type(self).asked += 1
        raise StorageError(ConnectionError("nobody answers"))


def test_no_more_than_may_are_taken_and_each_says_what_is_left() -> None:
    limits = RequestLimits()
    answers = [limits.take("ada", most_per_min=3) for _ in range(4)]
    assert [is_taken for _, is_taken in answers] == [True, True, True, False]
    assert [room.left for room, _ in answers] == [2, 1, 0, 0]
    assert all(1 <= room.more_in_s <= 60 and room.most == 3 for room, _ in answers)


def test_callers_do_not_count_for_each_other() -> None:
    limits = RequestLimits()
    assert [limits.take(who, most_per_min=1)[1] for who in ("ada", "ben", "ada")] == [True, True, False]


def test_an_address_with_too_many_wrong_keys_is_told_to_wait() -> None:
    limits = RequestLimits()
    for _ in range(2):
        limits.note_failed_login("192.0.2.1", most_per_min=2)
    with pytest.raises(TooManyRequests) as refusal:
        limits.note_failed_login("192.0.2.1", most_per_min=2)
    assert 1 <= refusal.value.retry_after_s <= 60
    limits.note_failed_login("192.0.2.2", most_per_min=2)


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("unix socket", "", False),
    ],
)
def test_who_may_take_any_address_of_a_network_is_one(first: str, second: str, is_same: bool) -> None:
    limits = RequestLimits()
    limits.note_failed_login(first, most_per_min=1)
    if is_same:
        with pytest.raises(TooManyRequests):
            limits.note_failed_login(second, most_per_min=1)
    else:
        limits.note_failed_login(second, most_per_min=1)


def test_while_the_shared_counts_are_away_this_process_counts_and_leaves_them_alone() -> None:
    limits = RequestLimits(AwayStorage())
    AwayStorage.asked = 0
    assert [limits.take("ada", most_per_min=2)[1] for _ in range(3)] == [True, True, False]
    assert AwayStorage.asked == 1


@pytest.mark.parametrize("url", [None, "amqp://guest@localhost//"])
def test_without_redis_each_process_counts_for_itself(
    url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if url is not None:
        monkeypatch.setenv("DOCTRIAGE_POOL__BROKER_URL", url)
    room, is_taken = request_limits(load_settings()).take("ada", most_per_min=2)
    assert (room.left, is_taken) == (1, True)
    assert isinstance(room, RequestRoom)
