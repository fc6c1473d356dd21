"""The order in which pages are handed out."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from models.document import Document, MediaType
from pipeline.chargeback.entries import Payer
from workers.run_state import PageQueue, ReadingState, SourceState
from workers.sources import Source


def reading(name: str, page_count: int) -> ReadingState:
    source = Source(path=Path(name), name=name, wanted=name, output_stem=name)
    return ReadingState(
        reading_id=len(name),
        document=Document(document_id=name, media_type=MediaType.PDF, byte_count=1, page_count=page_count),
        payer=Payer(cost_centre="harbour", submitter=None, submission_id=1),
        password=None,
        first=SourceState(number=0, source=source),
        pending=deque(range(1, page_count + 1)),
    )


def batches(queue: PageQueue) -> list[tuple[str, tuple[int, ...]]]:
    tasks = iter(queue.next_batch, None)
    return [(task.document.document_id, task.page_numbers) for task in tasks]


def test_every_page_is_handed_out_once_in_batches_that_shrink_to_the_end() -> None:
    queue = PageQueue(max_batch=4, jobs=2)
    queue.add(reading("long", 30))
    out = batches(queue)
    sizes = [len(numbers) for _, numbers in out]
    assert [number for _, numbers in out for number in numbers] == list(range(1, 31))
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (4, 1)


def test_a_long_document_does_not_keep_short_ones_waiting() -> None:
    queue = PageQueue(max_batch=4, jobs=2)
    for name, page_count in (("long", 600), ("short1", 2), ("short2", 1)):
        queue.add(reading(name, page_count))
    assert [name for name, _ in batches(queue)[:4]] == ["long", "short1", "short2", "long"]


def test_pages_that_are_not_in_a_row_go_separately() -> None:
    queue = PageQueue(max_batch=4, jobs=1)
    holed = reading("holed", 0)
    holed.pending.extend([1, 2, 5, 6, 7, 8, 9, 10, 11, 12])
    queue.add(holed)
    assert [numbers for _, numbers in batches(queue)[:2]] == [(1, 2), (5, 6, 7, 8)]


def test_pages_of_a_lost_batch_come_back_first_and_one_by_one() -> None:
    queue = PageQueue(max_batch=4, jobs=1)
    state = reading("crashing", 30)
    queue.add(state)
    task = queue.next_batch()
    assert task is not None
    assert task.page_numbers == (1, 2, 3, 4)
    state.put_back((2, 3, 4), alone=True)
    assert [numbers for _, numbers in batches(queue)[:4]] == [(2,), (3,), (4,), (5, 6, 7, 8)]
