"""What a submitter does where the broker, which has only tickets, goes away meanwhile."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from models.errors import BrokerUnavailable
from models.pool import Queue, SubmissionState
from tests.fakes.engines import FakeEngines, FakeOcr
from tests.fakes.pages import tiff_of_widths
from tests.integration.pool.bench import CountedTickets, pool_bench


class TicketsThatFail(CountedTickets):
    tries = 0

    def send(self, queue: Queue, count: int = 1) -> None:
        self.tries += 1
        raise BrokerUnavailable("redis://127.0.0.1:1: the broker does not answer")


def test_sources_are_submitted_although_their_tickets_cannot_be_sent(
    tmp_path: Path, postgres_url: SecretStr
) -> None:
    """``doctriage beat`` sends the tickets. A broker that does not answer is not waited for at each source."""
    folder = tmp_path / "in"
    for name in ("a.tif", "b.tif"):
        tiff_of_widths(folder / name, [500, 500 + len(name)])
    fakes = FakeEngines(ocr=FakeOcr(folder=tmp_path, faults={}))
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=fakes) as bench:
        bench.tickets = failing = TicketsThatFail()
        number = bench.submit(folder)
        assert failing.tries == 1
        progress = bench.host.store.pool.progress(number)
        assert progress.is_sealed
        assert bench.host.store.pool.backlog().waiting(Queue.INTAKE) == 2
        bench.tickets = CountedTickets()
        bench.tickets.sent[Queue.INTAKE] += 2
        bench.work()
        assert bench.host.store.pool.progress(number).state is SubmissionState.FINISHED
