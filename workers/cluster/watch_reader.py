"""Batches of a watch, read by the pool of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from models.errors import BudgetSpent, BudgetUnusable, PoolBusy
from pipeline.settings import Settings
from workers.cluster.connection import require_pool, require_pool_broker
from workers.cluster.ingesting import PoolRequest, fetch, submit_sources
from workers.cluster.sealed_passwords import sealed
from workers.events import Event, IngestReport
from workers.logs import set_up_logs
from workers.sources import Source
from workers.watch_files import FileVersion
from workers.watch_look import version_of

BUDGET_CODES: Final = frozenset({BudgetSpent.code, BudgetUnusable.code})

Batch = tuple[tuple[Source, FileVersion], ...]

log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class PoolReader:
    """A ``BatchReader``: each batch is a submission of its own. When the watch is stopped the pool goes on with it, and
    what it has read by the next start is not read again. A batch whose outputs could not be brought home is not
    submitted again, as long as none of its files changes: they are fetched by the next try.

    Raises SettingsError where the pool's broker or database is not named, or passwords cannot be sealed."""

    asked: PoolRequest
    settings: Settings
    on_event: Callable[[Event], None]
    _submitted: tuple[Batch, int] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        set_up_logs(self.settings.log_level)
        require_pool(self.settings)
        sealed(self.asked.request.passwords, self.settings.pool.secret_key)

    def read(self, sources: Sequence[Source], rows_dir: Path) -> IngestReport:
        """Also raises ``BudgetUnusable`` for what the workers refuse because of a budget:
        it is submitted again later."""
        require_pool_broker(self.settings)
        number = self._submission_of(sources)
        report = fetch(
            number,
            self.asked.request.out_dir,
            settings=self.settings,
            formats=self.asked.wishes.formats,
            on_event=self.on_event,
            rows_dir=rows_dir,
        )
        self._submitted = None
        for failure in report.failures:
            if failure.code in BUDGET_CODES:
                raise BudgetUnusable(failure.message)
        return report

    def _submission_of(self, sources: Sequence[Source]) -> int:
        batch = tuple((source, version_of(source.path)) for source in sources)
        if self._submitted is None or self._submitted[0] != batch:
            number = submit_sources(
                sources, self.asked, settings=self.settings, on_event=self.on_event, on_busy=_note_busy
            )
            self._submitted = (batch, number)
        return self._submitted[1]

    def rest(self) -> None:
        """Nothing is kept between batches."""

    def close(self) -> None:
        """Nothing is kept between batches."""


def _note_busy(error: PoolBusy) -> None:
    log.warning("pool_busy", reason=str(error))
