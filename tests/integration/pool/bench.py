"""A pool without a broker: tickets are counted, and the stages called as the tasks call them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from models.pool import Queue, SourceState
from pipeline.settings import Settings
from pipeline.store import SourceRecord, open_store
from workers.cluster.assemble_stage import assemble
from workers.cluster.deployment import load_deployment
from workers.cluster.host import Host
from workers.cluster.intake_stage import take_in
from workers.cluster.ocr_stage import read_pages
from workers.cluster.sealed_passwords import sealed
from workers.cluster.submitting import SubmissionOrder, Submitter
from workers.cluster.wishes import Wishes
from workers.messages import EngineBuilder
from workers.sources import find_sources

STAGES: Mapping[Queue, Callable[[Host], Counter[Queue]]] = {
    Queue.INTAKE: take_in,
    Queue.OCR: read_pages,
    Queue.ASSEMBLE: assemble,
}


@dataclass(slots=True)
class CountedTickets:
    sent: Counter[Queue] = field(default_factory=Counter)

    def send(self, queue: Queue, count: int = 1) -> None:
        self.sent[queue] += count

    def take(self, queue: Queue, count: int) -> None:
        self.sent[queue] -= min(count, self.sent[queue])

    def depth(self, queue: Queue) -> int:
        return self.sent[queue]


@dataclass(slots=True, eq=False)
class PoolBench:
    settings: Settings
    host: Host
    tickets: CountedTickets = field(default_factory=CountedTickets)

    def submit(self, folder: Path, *, passwords: tuple[str, ...] = (), **wishes: Any) -> int:
        submitter = Submitter(
            settings=self.settings,
            pool=self.host.store.pool,
            uploads=self.host.store.uploads,
            blobs=self.host.blobs,
            tickets=self.tickets,
            on_busy=_fail,
        )
        order = SubmissionOrder(
            cost_centre="harbour",
            submitter="ada",
            priority=5,
            wishes=Wishes(**wishes),
            sealed_passwords=sealed(passwords, self.settings.pool.secret_key),
        )
        submission_id = submitter.open(order)
        submitter.send(submission_id, find_sources([folder], left_out=()))
        return submission_id

    def work(self, queues: tuple[Queue, ...] = tuple(STAGES)) -> None:
        """Until no ticket is left in these queues."""
        while queue := next((queue for queue in queues if self.tickets.sent[queue]), None):
            self.tickets.sent[queue] -= 1
            for following, count in STAGES[queue](self.host).items():
                self.tickets.send(following, max(0, count))
                self.tickets.take(following, max(0, -count))

    def hurry(self) -> None:
        """As many pages as may be are claimed at a time, as after pages that took next to nothing."""
        self.host.pace.turn_ends(self.host.is_stopping)
        self.host.pace.note_turn(1_000_000)

    def sources(self, submission_id: int) -> dict[str, SourceRecord]:
        found = tuple(self.host.store.submissions.sources(submission_id))
        return {source.name: source for source in found}

    def output(self, source: SourceRecord, suffix: str) -> str:
        assert source.state is SourceState.SETTLED
        with self.host.blobs.open_result(source.source_id, suffix) as stream:
            return stream.read().decode()

    def pages(self, source: SourceRecord) -> list[dict[str, Any]]:
        pages: list[dict[str, Any]] = json.loads(self.output(source, ".json"))["pages"]
        return pages


@contextmanager
def pool_bench(
    home: Path,
    database_url: SecretStr,
    *,
    build_engines: EngineBuilder | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> Iterator[PoolBench]:
    chosen = Settings(home=home, database_url=database_url, **settings)
    open_store(home, database_url).close()
    deployment = load_deployment(chosen)
    if build_engines is not None:
        deployment = replace(deployment, build_engines=build_engines)
    with closing(Host(deployment, is_stopping=is_stopping)) as host:
        yield PoolBench(deployment.settings, host)


def _fail(error: Exception) -> None:
    raise error
