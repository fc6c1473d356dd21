"""What a run knows of its sources and readings, and which pages to hand out next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from models.document import Document
from pipeline.chargeback.entries import Account, Payer
from pipeline.fingerprint import Fingerprint
from workers.messages import ReadTask
from workers.sources import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """``publishes``: a document's files are written once all of it is read."""

    submission_id: int
    account: Account
    fingerprint: Fingerprint
    force: bool
    jobs: int
    publishes: bool = True


@dataclass(slots=True, eq=False)
class SourceState:
    """One source on its way. ``source_id`` is its row, once intake has answered."""

    number: int
    source: Source
    attempts: int = 0
    source_id: int | None = None
    reading: ReadingState | None = None
    is_settled: bool = False

    @property
    def name(self) -> str:
        return self.source.name


@dataclass(slots=True, eq=False)
class ReadingState:
    """One document's pages. ``first`` is the source that brought it and whose name its events bear.

    ``in_flight`` are pages that a worker of ours was sent and has not settled, ``at_vlm`` those that our
    transcriber has; ``alone`` are pages that were
    in a batch whose worker was lost: each is sent by itself, so the next loss is charged to the right one.
    ``wanted`` are the pages that the run is about, None for all.
    """

    reading_id: int
    document: Document
    payer: Payer
    password: str | None = field(repr=False)
    first: SourceState
    wanted: frozenset[int] | None = None
    sources: list[SourceState] = field(default_factory=list)
    pending: deque[int] = field(default_factory=deque)
    in_flight: set[int] = field(default_factory=set)
    at_vlm: set[int] = field(default_factory=set)
    alone: set[int] = field(default_factory=set)
    reported: set[int] = field(default_factory=set)
    is_complete: bool = False
    is_queued: bool = False

    @property
    def waits_for_others(self) -> bool:
        """Nothing left for us to do, yet not complete: another run holds pages of it."""
        return not (self.is_complete or self.pending or self.in_flight or self.at_vlm)

    def wanted_of(self, page_numbers: Iterable[int]) -> list[int]:
        return [number for number in page_numbers if self.wanted is None or number in self.wanted]

    def put_back(self, page_numbers: Iterable[int], *, alone: bool) -> None:
        """Queue pages again, in order and before the others."""
        numbers = sorted(page_numbers)
        self.in_flight.difference_update(numbers)
        self.pending.extendleft(reversed([number for number in numbers if number not in self.pending]))
        if alone:
            self.alone.update(numbers)

    def next_batch(self, max_pages: int) -> ReadTask:
        """The next pages in a row, at most ``max_pages``; they are in flight now."""
        batch = [self.pending.popleft()]
        while (
            self.pending
            and len(batch) < max_pages
            and self.pending[0] == batch[-1] + 1
            and self.alone.isdisjoint((batch[0], self.pending[0]))
        ):
            batch.append(self.pending.popleft())
        self.in_flight.update(batch)
        return ReadTask(
            reading_id=self.reading_id,
            document=self.document,
            page_numbers=tuple(batch),
            payer=self.payer,
            password=self.password,
        )


class PageQueue:
    """Hands out batches, one of each document in turn, so a long one does not keep short ones waiting.

    Batches shrink towards the end, so that all processes finish together.
    """

    def __init__(self, *, max_batch: int, jobs: int) -> None:
        self._max_batch = max_batch
        self._jobs = jobs
        self._ring: deque[ReadingState] = deque()

    def add(self, reading: ReadingState) -> None:
        """Make sure that the reading's pending pages get their turn."""
        if reading.pending and not reading.is_queued:
            reading.is_queued = True
            self._ring.append(reading)

    def next_batch(self) -> ReadTask | None:
        if not self._ring:
            return None
        waiting = self._count_up_to(self._max_batch * self._jobs * 2)
        batch_size = max(1, min(self._max_batch, waiting // (self._jobs * 2)))
        reading = self._ring.popleft()
        reading.is_queued = False
        task = reading.next_batch(batch_size)
        self.add(reading)
        return task

    def _count_up_to(self, enough: int) -> int:
        """How many pages wait; counting ends at ``enough``."""
        waiting = 0
        for reading in self._ring:
            waiting += len(reading.pending)
            if waiting >= enough:
                break
        return waiting
