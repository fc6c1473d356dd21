"""A long document comes out whole and in order, once, although a worker is killed and the broker is emptied."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.acceptance.pool.house import EVERYTHING, House, register_line, rows_of, write_register

pytestmark = pytest.mark.slow

PAGES = 150


def test_every_page_once_and_in_order(house: House, tmp_path: Path) -> None:
    source = write_register(tmp_path / "big.pdf", PAGES)
    house.workers.beat()
    doomed, other = house.begin_workers(EVERYTHING, EVERYTHING)
    with house.begun_ingest(source, "--out", tmp_path / "out") as ingest:
        house.wait_until(lambda: house.settled_pages("big.pdf") >= PAGES / 2)
        os.kill(doomed.pid, signal.SIGKILL)
        house.wait_until(lambda: house.settled_pages("big.pdf") >= PAGES * 2 / 3)
        house.broker.lose_everything()
        said, _ = ingest.communicate()
    assert ingest.returncode == 0, said + house.logs
    assert (doomed.starts, other.starts) == (2, 1)
    assert_whole(tmp_path / "out", PAGES)
    assert (
        house.number("SELECT count(*) FROM sources WHERE state = 'settled' AND written_at_s IS NOT NULL") == 1
    )
    read = "SELECT count(*) FROM ledger WHERE kind = 'cpu_page' AND outcome = 'read'"
    assert house.number(read) == PAGES
    assert house.number("SELECT count(*) FROM ledger") == house.number("SELECT sum(attempts) FROM pages")


def assert_whole(out: Path, pages: int) -> None:
    wanted = list(range(1, pages + 1))
    markdown = (out / "big.pdf.md").read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"Page (\d+) of the register", markdown)] == wanted
    told = json.loads((out / "big.pdf.json").read_text(encoding="utf-8"))["pages"]
    assert [page["page_number"] for page in told] == wanted
    assert all(register_line(page["page_number"], "big") in page["text"] for page in told)
    assert [row["page_number"] for row in rows_of(out / "pages.jsonl")] == wanted
    assert rows_of(out / "failures.jsonl") == []
