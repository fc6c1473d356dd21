"""Pages that this process has claimed are read on the CPU; each outcome is in the database before it is told."""

from __future__ import annotations

import faulthandler
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from models.document import Document
from models.errors import DoctriageError, EngineError, EngineUnavailable, PageFailed, StoreUnavailable
from models.page import PageResult, Route
from pipeline.blobs import BlobStore
from pipeline.chargeback.entries import Account
from pipeline.planning.serving_plan import ServingPlan
from pipeline.policy import Policy
from pipeline.publish import DiskFull, not_writable
from pipeline.settings import Settings
from pipeline.store import Store
from workers.cpu_time import cpu_seconds
from workers.messages import PageAttemptFailed, PageDone, PageEscalated
from workers.page_settlement import CpuAttempt, charge_attempt, finish_attempt

if TYPE_CHECKING:
    from pipeline.page_pipeline import Engines

WATCHDOG_SLACK_S: Final = 60.0
"""The executor kills a silent worker; this much later the worker ends itself, should the executor be gone."""

PageRead = PageDone | PageEscalated | PageAttemptFailed
"""How an attempt at a page ended."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReader:
    """``owner`` is the name that the leases of the pages bear."""

    settings: Settings
    policy: Policy
    plan: ServingPlan
    store: Store
    blobs: BlobStore
    engines: Engines
    owner: str

    def read_claimed(
        self,
        reading_id: int,
        document: Document,
        page_numbers: Sequence[int],
        account: Account,
        password: str | None,
        *,
        stop_after: Callable[[], bool] | None = None,
    ) -> Generator[PageRead, None, None]:
        """Read pages that ``owner`` holds, in order, and say of each how that ended; nothing of a page that somebody
        else holds by then. The reading is completed with the last of its pages.

        ``stop_after`` is asked after each page: once it says so, or the generator is closed, the pages that are left
        have not been begun and are still the owner's, for the caller to give back. Raises what no page can be read
        without: ``EngineUnavailable``, ``StoreUnavailable`` and ``DiskFull``. A page that hangs for too long ends this
        process.
        """
        self._watch()
        started_cpu_s = cpu_seconds()
        try:
            for page_number, outcome in self._outcomes(document, page_numbers, password):
                attempt = CpuAttempt(
                    reading_id=reading_id,
                    document_id=document.document_id,
                    page_number=page_number,
                    owner=self.owner,
                    account=account,
                    cpu_s=cpu_seconds() - started_cpu_s,
                )
                end = self._settle(attempt, outcome)
                self.store.pages.complete_reading(reading_id)
                if end is not None:
                    yield end
                if stop_after is not None and stop_after():
                    return
                self._watch()
                started_cpu_s = cpu_seconds()
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        """End this process should the page hang and nobody be left to end it."""
        limit_s = self.settings.executor.page_timeout_s
        faulthandler.dump_traceback_later(limit_s + WATCHDOG_SLACK_S, exit=True)

    def _outcomes(
        self, document: Document, page_numbers: Sequence[int], password: str | None
    ) -> Iterator[tuple[int, PageResult | PageFailed]]:
        """One outcome a page, whatever the stages do: what they raise fails the page they were at."""
        left = list(page_numbers)
        while left:
            try:
                for page_number, outcome in self._read(document, tuple(left), password):
                    left.remove(page_number)
                    yield page_number, outcome
                failure = PageFailed("the page was not rendered")
            except (EngineUnavailable, StoreUnavailable):
                raise
            except DoctriageError as error:
                failure = error if isinstance(error, PageFailed) else PageFailed(str(error))
            except Exception as error:
                _stop_where_the_disk_is_full(error)
                log.warning(
                    "page_failed", document_id=document.document_id, page_number=left[0], exc_info=True
                )
                failure = EngineError(f"page {left[0]}: {type(error).__name__}: {error}")
            if left:
                yield left.pop(0), failure

    def _read(
        self, document: Document, page_numbers: tuple[int, ...], password: str | None
    ) -> Iterator[tuple[int, PageResult | PageFailed]]:
        from pipeline.page_pipeline import read_pages

        with self.blobs.lent(document.document_id) as path:
            yield from read_pages(
                path, document, page_numbers, self.engines, self.settings, self.policy, self.plan, password
            )

    def _settle(self, attempt: CpuAttempt, outcome: PageResult | PageFailed) -> PageRead | None:
        """Store the outcome. None when the page is not ours any more: somebody else answers for it."""
        if isinstance(outcome, PageResult):
            try:
                return self._finish(attempt, outcome)
            except (TypeError, ValueError) as error:
                outcome = EngineError(f"page {attempt.page_number}: the result cannot be stored ({error})")
        return charge_attempt(
            self.store.pages, attempt, outcome, max_attempts=self.settings.executor.max_attempts
        )

    def _finish(self, attempt: CpuAttempt, result: PageResult) -> PageDone | PageEscalated | None:
        awaits_vlm = result.route is Route.OCR_DEGRADED and self.settings.vlm.is_configured
        if not finish_attempt(self.store.pages, attempt, result, awaits_vlm=awaits_vlm):
            return None
        if awaits_vlm:
            return PageEscalated(page_number=attempt.page_number)
        return PageDone(page_number=attempt.page_number, route=result.route, elapsed_s=result.elapsed_s)


def _stop_where_the_disk_is_full(error: Exception) -> None:
    """Nothing more can be read without room for temporary files, so the run ends once and not page by page."""
    if isinstance(error, OSError):
        refusal = not_writable(Path(tempfile.gettempdir()), error)
        if isinstance(refusal, DiskFull):
            raise refusal from error
