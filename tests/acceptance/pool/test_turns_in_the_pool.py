"""One page of another cost centre does not wait for the many that were there before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.pool.house import House, write_register

pytestmark = pytest.mark.slow

PAGES = 300
MOST_BETWEEN = 12
"""Pages of the long document that may end while one is taken in, read and told of: some claims of both processes."""


def test_a_page_of_another_cost_centre_is_next(busy_house: House, tmp_path: Path) -> None:
    title = f"long-{busy_house.database}"
    long = write_register(tmp_path / f"{title}.pdf", PAGES)
    short = write_register(tmp_path / "short.pdf", 1)
    with busy_house.begun_ingest(long, "--out", tmp_path / "long", "--cost-centre", "archive") as ingest:
        busy_house.wait_until(lambda: busy_house.settled_pages(long.name) >= 10)
        done = busy_house.ingest(short, "--out", tmp_path / "short", "--cost-centre", "harbour")
        assert done.returncode == 0, done.stderr + busy_house.logs
        assert ingest.poll() is None, "the long one was over before"
        [(added_at_s, settled_at_s)] = busy_house.rows(
            "SELECT taken_in_at_s, settled_at_s FROM sources WHERE name = 'short.pdf'"
        )
        between = busy_house.number(
            "SELECT count(*) FROM pages JOIN sources USING (reading_id) "
            f"WHERE sources.name = '{long.name}' AND pages.settled_at_s BETWEEN {added_at_s} AND {settled_at_s}"
        )
        [(number,)] = busy_house.rows(f"SELECT submission_id FROM sources WHERE name = '{long.name}'")
        cancelled = busy_house.doctriage("submissions", "cancel", str(number), "--yes")
        said, _ = ingest.communicate()
    assert cancelled.returncode == 0, cancelled.stderr
    assert ingest.returncode == 1, said + busy_house.logs
    assert between <= MOST_BETWEEN
