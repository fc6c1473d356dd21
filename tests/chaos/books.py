"""What must hold after the storm: one result a page, one entry an attempt, nothing lost and nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.papers import Paper, line_of
from tests.fakes.vlm_script import SeenRequest
from tests.postgres import PostgresServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """``lost`` are pages without a result, ``double`` whatever is there twice, ``failed`` pages that were given up."""

    pages: int
    lost: int
    double: int
    failed: int
    degraded: int
    cpu_attempts: int
    vlm_calls: int
    losses: int
    unbooked: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.double or self.failed or self.unbooked)


def figures(
    out_folders: Sequence[Path],
    papers: Sequence[Paper],
    postgres: PostgresServer,
    database: str,
    seen: Iterable[SeenRequest],
) -> Figures:
    routes = Counter[str]()
    found = Counter[tuple[str, int]]()
    for out in out_folders:
        for row in map(json.loads, (out / "pages.jsonl").read_text("utf-8").splitlines()):
            found[row["source"], row["page_number"]] += 1
            routes[row["route"] or "failed"] += row["state"] == "done"
    wanted = {(paper.name, number) for paper in papers for number in range(1, paper.pages + 1)}
    right = {key for key in wanted if found[key] and _is_written(out_folders, *key)}

    def number(query: str) -> int:
        [(value,)] = postgres.execute(query, database)
        return int(str(value or 0))

    unbooked = tuple(_unbooked(number, [request.request_id for request in seen], postgres, database))
    return Figures(
        pages=len(wanted),
        lost=len(wanted - right),
        double=sum(count - 1 for count in found.values() if count > 1) + number(DOUBLE),
        failed=number("SELECT count(*) FROM pages WHERE state = 'failed'"),
        degraded=routes["ocr_degraded"],
        cpu_attempts=number("SELECT count(*) FROM ledger WHERE kind = 'cpu_page'"),
        vlm_calls=number("SELECT count(*) FROM ledger WHERE kind = 'vlm_call'"),
        losses=number("SELECT sum(losses) FROM pages"),
        unbooked=unbooked,
    )


DOUBLE = """
SELECT count(*) FROM (
  SELECT 1 FROM ledger WHERE vlm_pages = 1 GROUP BY reading_id, page_number HAVING count(*) > 1
  UNION ALL
  SELECT 1 FROM ledger WHERE kind = 'cpu_page' AND outcome = 'read'
  GROUP BY reading_id, page_number HAVING count(*) > 1
) AS twice
"""

CHECKS = {
    "calls that are open": "SELECT count(*) FROM vlm_attempts WHERE verdict IS NULL",
    "calls closed without an entry": """
        SELECT count(*) FROM vlm_attempts LEFT JOIN ledger ON ledger.kind = 'vlm_call'
          AND ledger.reading_id = vlm_attempts.reading_id AND ledger.page_number = vlm_attempts.page_number
          AND ledger.attempt = vlm_attempts.attempt
        WHERE ledger.entry_id IS NULL""",
    "pages whose attempts are not those of the ledger": """
        SELECT count(*) FROM pages WHERE attempts <> (
          SELECT count(*) FROM ledger WHERE kind = 'cpu_page'
          AND ledger.reading_id = pages.reading_id AND ledger.page_number = pages.page_number)""",
    "pages held by somebody": "SELECT count(*) FROM pages WHERE lease_owner IS NOT NULL",
    "places for calls taken": "SELECT count(*) FROM vlm_slots WHERE owner IS NOT NULL",
    "submissions not finished": "SELECT count(*) FROM submissions WHERE state <> 'finished'",
    "sources not settled": "SELECT count(*) FROM sources WHERE state <> 'settled'",
    "sources refused": "SELECT count(*) FROM sources WHERE error_code IS NOT NULL",
}


def _unbooked(number, request_ids, postgres, database):  # type: ignore[no-untyped-def]
    for what, query in CHECKS.items():
        if count := number(query):
            yield f"{count} {what}"
    booked = {name for (name,) in postgres.execute("SELECT request_id FROM vlm_attempts", database)}
    if strangers := set(request_ids) - booked:
        yield f"{len(strangers)} requests that nobody booked"
    if len(request_ids) != len(set(request_ids)):
        yield "requests made twice under one name"


def _is_written(out_folders: Sequence[Path], name: str, page_number: int) -> bool:
    """The page's own line stands in its document's JSON, on its page, once."""
    paths = [out / f"{name}.json" for out in out_folders if (out / f"{name}.json").exists()]
    if len(paths) != 1:
        return False
    pages = json.loads(paths[0].read_text("utf-8"))["pages"]
    texts = [page["text"] for page in pages if page["page_number"] == page_number]
    return len(texts) == 1 and line_of(name, page_number) in (texts[0] or "")
