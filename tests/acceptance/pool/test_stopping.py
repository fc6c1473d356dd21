"""Workers that are told to stop, and workers that are replaced: no page is lost, and none is charged twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.pool.house import EVERYTHING, House, register_line, write_register
from tests.acceptance.test_ingest_command_line import write_long_scan

pytestmark = pytest.mark.slow

SCANNED = 8


@pytest.fixture
def scanned(house: House, tmp_path: Path) -> Iterator[str]:
    """A document of eight scanned pages that was submitted, the name of its source."""
    source = write_long_scan(tmp_path / "scans.tif", SCANNED)
    house.workers.worker("intake,assemble", 1)
    submitted = house.ingest(source, "--out", tmp_path / "out", "--detach")
    assert submitted.returncode == 0, submitted.stderr
    return source.name


def finished(house: House, out: Path) -> str:
    """The Markdown, once another worker has read the rest."""
    house.workers.beat()
    house.workers.worker("ocr", 1)
    fetched = house.doctriage("submissions", "fetch", "1", "--out", out)
    assert fetched.returncode == 0, fetched.stderr + house.logs
    return (out / "scans.tif.md").read_text(encoding="utf-8")


def attempts(house: House) -> list[tuple[int, int]]:
    """Of each page those of the ledger, and the losses."""
    return house.rows(
        "SELECT count(ledger.entry_id), max(pages.losses) FROM pages JOIN ledger USING (reading_id, page_number) "
        "GROUP BY page_number ORDER BY page_number"
    )


def test_sigterm_ends_the_page_under_way_and_gives_back_the_rest(
    house: House, scanned: str, tmp_path: Path
) -> None:
    worker = house.workers.worker("ocr", 1)
    house.wait_until(lambda: house.settled_pages(scanned) >= 1)
    assert worker.stop() == 0
    read = house.settled_pages(scanned)
    assert 1 <= read < SCANNED
    assert house.number("SELECT count(*) FROM pages WHERE lease_owner IS NOT NULL") == 0
    assert house.number("SELECT count(*) FROM pages WHERE state = 'pending'") == SCANNED - read
    assert f"Sheet {SCANNED}." in finished(house, tmp_path / "out")
    assert attempts(house) == [(1, 0)] * SCANNED


def test_a_second_interrupt_costs_the_page_under_way_and_no_other(
    house: House, scanned: str, tmp_path: Path
) -> None:
    worker = house.workers.worker("ocr", 1)
    house.wait_until(lambda: house.settled_pages(scanned) >= 1)
    worker.interrupt()
    worker.await_log("Hitting Ctrl+C again")
    worker.interrupt()
    worker.await_end()
    read = house.settled_pages(scanned)
    assert 1 <= read < SCANNED
    assert f"Sheet {SCANNED}." in finished(house, tmp_path / "out")
    lost = [(2, 1)] if house.number("SELECT sum(losses) FROM pages") else []
    assert sorted(attempts(house)) == sorted([(1, 0)] * (SCANNED - len(lost)) + lost)


def test_workers_that_have_read_enough_are_replaced_and_lose_nothing(house: House, tmp_path: Path) -> None:
    pages, most = 40, 10
    source = write_register(tmp_path / "many.pdf", pages)
    limits = {"DOCTRIAGE_EXECUTOR__MAX_PAGES_PER_WORKER": str(most), "DOCTRIAGE_POOL__PAGES_PER_CLAIM": "1"}
    worker = house.workers.worker(EVERYTHING, 1, **limits)
    house.workers.beat()
    seen: set[int] = set()
    with house.begun_ingest(source, "--out", tmp_path / "out") as ingest:
        while ingest.poll() is None:
            seen.update(child.pid for child in worker.workers())
        said, _ = ingest.communicate()
    assert ingest.returncode == 0, said + house.logs
    assert len(seen) >= pages / most
    markdown = (tmp_path / "out" / "many.pdf.md").read_text(encoding="utf-8")
    assert all(register_line(number, "many") in markdown for number in range(1, pages + 1))
    assert house.rows("SELECT DISTINCT attempts, losses FROM pages") == [(1, 0)]
