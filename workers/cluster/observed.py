"""One piece of work as those see it who watch: in the logs its ids, in the metrics its time, in the trace a span."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from structlog.contextvars import bind_contextvars, bound_contextvars, unbind_contextvars

from models.pool import Queue
from pipeline.store import SubmissionTerms
from workers.cluster.metrics import worker_metrics
from workers.cluster.spans import Span, Value
from workers.cluster.tracing import stage_span
from workers.messages import PageAttemptFailed, PageDone, PageEscalated, PageNotOurs, PageTranscribed

Ended = PageDone | PageEscalated | PageAttemptFailed | PageTranscribed | PageNotOurs


@dataclass(slots=True)
class Work:
    """A piece of work that is under way."""

    queue: Queue
    span: Span
    _outcomes: dict[int, str] = field(default_factory=dict)
    _learned: set[str] = field(default_factory=set)

    def learn(self, **ids: Value) -> None:
        """What came to be known of it, such as its ``document_id``."""
        bind_contextvars(**ids)
        self._learned.update(ids)
        self.span.set(_attributes(ids))

    def page_ended(self, ended: Ended) -> None:
        outcome = _outcome(ended)
        self._outcomes[ended.page_number] = outcome
        worker_metrics().page_ended(self.queue, outcome)
        if isinstance(ended, PageAttemptFailed) and not ended.gave_up:
            worker_metrics().page_retried(ended.code)

    def refuse(self, code: str) -> None:
        worker_metrics().source_refused(self.queue, code)
        self.span.fail(code)

    def end(self) -> None:
        """The span tells the pages that ended, and how each did, in one order."""
        unbind_contextvars(*self._learned)
        if self._outcomes:
            self.span.set(
                {
                    "doctriage.ended_pages": tuple(self._outcomes),
                    "doctriage.outcomes": tuple(self._outcomes.values()),
                }
            )


@contextmanager
def observed_work(queue: Queue, owner: str, terms: SubmissionTerms, **ids: Value) -> Iterator[Work]:
    """``queue``'s work is done inside, for the submission with these ``terms``. ``ids`` name what it is about, and
    hold no word of it."""
    known = {"submission_id": terms.submission_id, **ids}
    attributes = {"doctriage.cost_centre": terms.cost_centre, **_attributes(known)}
    with (
        worker_metrics().timed(queue),
        bound_contextvars(queue=str(queue), owner=owner, **_worker(), **known),
        stage_span(str(queue), terms.traceparent, attributes) as span,
    ):
        work = Work(queue, span)
        try:
            yield work
        finally:
            work.end()


class NothingFound(Counter[Queue]):
    """The tickets that follow where nothing was claimed: none."""


def nothing_found(queue: Queue) -> NothingFound:
    """A ticket was one too many."""
    worker_metrics().ticket_unused(queue)
    return NothingFound()


def _worker() -> dict[str, str]:
    """The name that Celery has for this worker, where a task is under way."""
    celery = sys.modules.get("celery")  # who has not imported it is none of its workers
    task = None if celery is None else celery.current_task
    return {"worker": task.request.hostname} if task else {}


def _attributes(ids: Mapping[str, Value]) -> dict[str, Value]:
    return {f"doctriage.{name}": value for name, value in ids.items()}


def _outcome(ended: Ended) -> str:
    match ended:
        case PageDone() | PageTranscribed():
            return str(ended.route)
        case PageEscalated():
            return "escalated"
        case PageNotOurs():
            return "not_ours"
        case PageAttemptFailed():
            return "failed" if ended.gave_up else "retried"
