"""What ``doctriage submissions`` asks of the pool, and tells it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from models.errors import Cancelled, DocumentFailed, SettingsError, SubmissionNotOpen
from models.pool import SourceState, SubmissionState
from models.tables import PageState
from pipeline.settings import Settings
from pipeline.store import SourceRecord, Store, SubmissionProgress, SubmissionTerms, open_store
from workers.cluster.sealed_passwords import unsealed
from workers.cluster.wishes import Wishes

RECENT_S: Final = 300.0
"""The pace of a submission is that of its last five minutes."""

FAILURES_NAMED: Final = 20
PACE_KEPT_S: Final = 5.0
"""While a submission is followed, its pace is asked for no more often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``pages`` were settled within the last ``over_s``, those of earlier runs left out."""

    pages: int
    over_s: float

    @property
    def pages_per_minute(self) -> float:
        return 60 * self.pages / self.over_s if self.over_s > 0 else 0.0

    def time_for_s(self, pages: int) -> float | None:
        """None where nothing was settled: nobody knows."""
        return self.over_s * pages / self.pages if self.pages else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A document that was not read, or, with ``page_number``, a page that was not."""

    source: str
    page_number: int | None
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """``first`` are some of them: documents by name, then the pages that failed last. A document none of whose pages
    could be read is there with its pages. ``cancelled_sources`` are no failures."""

    first: tuple[Failure, ...] = ()
    refused_sources: int = 0
    cancelled_sources: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionView:
    """A submission as it stood at ``seen_at_s``. ``sealed_passwords`` is None where the pool's key is not at hand to
    count them."""

    progress: SubmissionProgress
    wishes: Wishes
    sealed_passwords: int | None
    pace: Pace | None
    failures: Failures
    seen_at_s: float

    @property
    def is_total_known(self) -> bool:
        """Until every document is there and opened, the number of pages grows."""
        sources = self.progress.sources
        unopened = sources.get(SourceState.RECEIVED, 0) + sources.get(SourceState.IN_INTAKE, 0)
        return self.progress.is_over or (self.progress.is_sealed and unopened == 0)

    @property
    def left_s(self) -> float | None:
        """Roughly, of a submission that is open; None where nothing tells."""
        if self.progress.is_over or self.pace is None or not self.is_total_known:
            return None
        return self.pace.time_for_s(self.progress.total_pages - self.progress.settled_pages)


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    with closing(open_store(settings.home.absolute(), settings.database_url)) as store:
        yield store


class SubmissionLook:
    """Looks at one submission as often as it is asked to."""

    def __init__(
        self,
        store: Store,
        submission_id: int,
        *,
        secret_key: SecretStr | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._submission_id = submission_id
        self._secret_key = secret_key
        self._clock = clock
        self._pace: Pace | None = None
        self._paced_at_s = 0.0
        self._failures = Failures()
        self._failed = (0, 0)

    def view(self) -> SubmissionView:
        """Raises SubmissionNotFound where there is none of that number."""
        progress = self._store.pool.progress(self._submission_id)
        terms = self._store.pool.terms(self._submission_id)
        now_s = self._clock()
        self._look_at_pace(progress, now_s)
        self._look_at_failures(progress)
        return SubmissionView(
            progress=progress,
            wishes=Wishes.from_json(terms.wishes),
            sealed_passwords=_password_count(terms, self._secret_key),
            pace=None if progress.is_over else self._pace,
            failures=self._failures,
            seen_at_s=now_s,
        )

    def _look_at_pace(self, progress: SubmissionProgress, now_s: float) -> None:
        if progress.is_over or now_s - self._paced_at_s < PACE_KEPT_S:
            return
        since_s = max(progress.created_at_s, now_s - RECENT_S)
        settled = self._store.pool.settled_pages(self._submission_id, since_s=since_s)
        pages = {(page.reading_id, page.page_number) for page in settled if not page.from_earlier_run}
        self._pace = Pace(pages=len(pages), over_s=now_s - since_s)
        self._paced_at_s = now_s

    def _look_at_failures(self, progress: SubmissionProgress) -> None:
        failed = (progress.failed_sources, progress.pages.get(PageState.FAILED, 0))
        if failed != self._failed:
            self._failures = _failures(self._store, self._submission_id)
            self._failed = failed


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledSubmission:
    """``progress`` is that of before; ``was_open`` unless it had been cancelled before."""

    progress: SubmissionProgress
    was_open: bool

    @property
    def pages_on_cpu(self) -> int:
        return self.progress.pages.get(PageState.RUNNING, 0)

    @property
    def pages_at_vlm(self) -> int:
        return self.progress.pages.get(PageState.TRANSCRIBING, 0)


def require_cancellable(store: Store, submission_ids: Iterable[int]) -> tuple[SubmissionProgress, ...]:
    """Each once, in the order given. Raises SubmissionNotFound for one that is not there and SubmissionNotOpen for one
    that is finished, so that of several none is cancelled by a command that names a wrong one."""
    found = tuple(store.pool.progress(submission_id) for submission_id in dict.fromkeys(submission_ids))
    for progress in found:
        if progress.state is SubmissionState.FINISHED:
            raise _finished(progress.submission_id)
    return found


def cancel(store: Store, submission_id: int) -> CancelledSubmission:
    """Raises SubmissionNotFound, and SubmissionNotOpen for one that is finished."""
    progress = store.pool.progress(submission_id)
    was_open = store.pool.cancel(submission_id)
    if not was_open and store.pool.progress(submission_id).state is SubmissionState.FINISHED:
        raise _finished(submission_id)
    return CancelledSubmission(progress=progress, was_open=was_open)


def prioritise(store: Store, submission_id: int, priority: int) -> int:
    """The priority that it had. Raises SubmissionNotFound, and SubmissionNotOpen for one that is over."""
    progress = store.pool.progress(submission_id)
    if not store.pool.prioritise(submission_id, priority):
        state = store.pool.progress(submission_id).state
        raise SubmissionNotOpen(
            f"submission {submission_id} is {state} already; only an open one has a turn to change"
        )
    return progress.priority


def require_formats(store: Store, submission_id: int, formats: tuple[str, ...] | None) -> tuple[str, ...]:
    """Those to fetch; None is all that were asked for. Raises SubmissionNotFound, and SettingsError for one that the
    workers do not write."""
    written = Wishes.from_json(store.pool.terms(submission_id).wishes).formats
    missing = [name for name in formats or () if name not in written]
    if missing:
        raise SettingsError(
            f"submission {submission_id} was asked for {' and '.join(written)}, not for {' and '.join(missing)}; "
            "leave --format out, or submit it again with it, which reads nothing twice"
        )
    return formats or written


def _finished(submission_id: int) -> SubmissionNotOpen:
    return SubmissionNotOpen(
        f"submission {submission_id} is finished already, and nothing of it can be cancelled; "
        f"`doctriage submissions fetch {submission_id} --out DIR` brings what was read"
    )


def _password_count(terms: SubmissionTerms, key: SecretStr | None) -> int | None:
    """None where they cannot be counted here."""
    try:
        return len(unsealed(terms.sealed_passwords, key))
    except SettingsError:
        return None


def _failures(store: Store, submission_id: int) -> Failures:
    counts = {True: 0, False: 0}
    named: list[Failure] = []
    for source in store.submissions.sources(submission_id):
        if source.error_code in (None, DocumentFailed.code):
            continue
        is_cancelled = source.error_code == Cancelled.code
        counts[is_cancelled] += 1
        if not is_cancelled and len(named) < FAILURES_NAMED:
            named.append(_refusal(source))
    pages = store.pool.dead_pages(submission_id=submission_id, limit=FAILURES_NAMED - len(named))
    named.extend(
        Failure(source=page.source_name, page_number=page.page_number, code=page.code, message=page.message)
        for page in pages
    )
    return Failures(first=tuple(named), refused_sources=counts[False], cancelled_sources=counts[True])


def _refusal(source: SourceRecord) -> Failure:
    return Failure(
        source=source.name, page_number=None, code=source.error_code or "", message=source.error_message or ""
    )
