"""What a submitter does where the broker, which has only tickets, goes away, and where others tidy up meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from models.errors import BrokerUnavailable, StoreUnreachable
from models.pool import Queue, SubmissionState
from pipeline.blobs.copies import Snapshot
from pipeline.blobs.sources import sha256_of
from tests.fakes.engines import FakeEngines, FakeOcr
from tests.fakes.pages import tiff_of_widths
from tests.integration.pool.bench import CountedTickets, pool_bench
from tests.postgres import PostgresServer
from workers.cluster import patience
from workers.orphan_bytes import OrphanBytes
from workers.owner import current_owner

DEAD = f"{current_owner().partition('/')[0]}/another-boot/1/1"


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


def test_bytes_that_a_killed_server_left_stay_once_somebody_submits_them(
    tmp_path: Path, postgres_url: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tidies up comes when they have their name again, and no source has: the worst moment there is."""
    tiff_of_widths(tmp_path / "in" / "a.tif", [500])
    blob_id = sha256_of(tmp_path / "in" / "a.tif")
    with pool_bench(tmp_path / "pool", postgres_url) as bench:
        store, blobs = bench.host.store, bench.host.blobs
        tidy, keep = OrphanBytes(store, blobs).look, blobs.keep
        store.uploads.note_arriving(blob_id, DEAD)

        def keep_and_tidy(snapshot: Snapshot) -> None:
            keep(snapshot)
            assert tidy() == 1

        monkeypatch.setattr(blobs, "keep", keep_and_tidy)
        bench.submit(tmp_path / "in")
        assert blobs.byte_count(blob_id) is not None
        assert store.uploads.erase_orphans(lambda _: False, blobs.drop, older_than_s=0) == 0


def test_connections_that_are_cut_meanwhile_cost_a_submission_nothing(
    tmp_path: Path, postgres_url: SecretStr, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of each source: what was done before is not done again."""
    for number in range(4):
        tiff_of_widths(tmp_path / "in" / f"{number}.tif", [500 + number])
    monkeypatch.setattr(patience, "AWAY_S", 0.1)
    with pool_bench(tmp_path / "pool", postgres_url) as bench:
        keep, add_source = bench.host.blobs.keep, bench.host.store.pool.add_source
        cuts = iter(["cut", "no", "cut", "cut", "no", "no", "no", "no", "no", "no"])

        def keep_and_cut(snapshot: Snapshot) -> None:
            keep(snapshot)
            if next(cuts) == "cut":
                postgres.cut_connections()

        def add_without_answer(*arguments: Any, **named: Any) -> int:
            added = add_source(*arguments, **named)
            if next(cuts) == "cut":
                raise StoreUnreachable("the connection was lost")
            return added

        monkeypatch.setattr(bench.host.blobs, "keep", keep_and_cut)
        monkeypatch.setattr(bench.host.store.pool, "add_source", add_without_answer)
        submission_id = bench.submit(tmp_path / "in")
        sources = bench.sources(submission_id)
        progress = bench.host.store.pool.progress(submission_id)
    assert sources.keys() == {f"{number}.tif" for number in range(4)}
    assert progress.is_sealed
