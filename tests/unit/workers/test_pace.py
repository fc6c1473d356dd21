"""A process takes as many pages at a time as it lately read in a second, and no page is begun later than that."""

from __future__ import annotations

import pytest

from workers.cluster import pace as pace_module
from workers.cluster.pace import Pace


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace_module, "monotonic", clock)
    return clock


def test_a_process_that_has_read_nothing_takes_one_page() -> None:
    assert Pace(8).pages == 1


@pytest.mark.parametrize(
    ("pages", "took_s", "then"),
    [(1, 0.1, 8), (4, 1.0, 4), (1, 0.4, 2), (1, 1.6, 1), (3, 0.0, 8), (1, 900.0, 1)],
)
def test_it_takes_what_it_lately_read_in_a_second(clock: Clock, pages: int, took_s: float, then: int) -> None:
    pace = Pace(8)
    pace.turn_ends(lambda: False)
    clock.now_s += took_s
    pace.note_turn(pages)
    assert (pace.pages, pace.pages_read) == (then, pages)


def test_a_turn_in_which_nothing_was_read_says_nothing(clock: Clock) -> None:
    pace = Pace(8)
    pace.turn_ends(lambda: False)
    pace.note_turn(2)
    pace.turn_ends(lambda: False)
    clock.now_s += 60
    pace.note_turn(0)
    assert (pace.pages, pace.pages_read) == (8, 2)


def test_a_turn_is_over_after_a_second_or_when_the_process_is_to_end(clock: Clock) -> None:
    stopping = False
    ends = Pace(8).turn_ends(lambda: stopping)
    clock.now_s += 0.99
    assert not ends()
    stopping = True
    assert ends()
    stopping = False
    clock.now_s += 0.01
    assert ends()
