"""Statements as files: exact amounts, and text that no spreadsheet computes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from models.errors import SettingsError
from pipeline.chargeback.statement import OpenCalls, Statement, statement_of
from pipeline.chargeback.statement_lines import StatementBy
from pipeline.store import Store, open_store
from pipeline.store.statements import StatementStore
from tests.fakes.ledger import INVOICE, LETTER, book, cpu_page, every_kind, vlm_call
from workers.statement_files import json_text, parquet_bytes, require_parquet, write_csv

NAMES = {INVOICE: "=cmd|' /C calc'!A0.pdf"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path)) as opened:
        yield opened


def stated(store: Store, by: StatementBy = StatementBy.COST_CENTRE) -> Statement:
    days = ("2026-11-01", "2026-12-01")
    return statement_of(
        StatementStore(store.database).sums((by,), *days),
        by=by,
        first_day=days[0],
        end_day=days[1],
        open_calls=OpenCalls(calls=2, reserved_tokens=5_000),
    )


def csv_rows(statement: Statement) -> list[dict[str, str]]:
    stream = io.StringIO()
    write_csv(statement, NAMES, stream)
    return list(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))


def test_amounts_are_exact_decimals_and_what_has_no_price_is_empty(store: Store) -> None:
    every_kind(store)
    rows = csv_rows(stated(store))
    assert [(row["cost_centre"], row["currency"], row["is_forced_vlm"], row["cost"]) for row in rows] == [
        ("4711", "USD", "false", ""),
        ("4711/berlin", "EUR", "false", "0.000493"),
        ("research", "USD", "false", "-0.000465"),
        ("research", "USD", "true", "0.000493"),
        ("research/ocr", "USD", "false", "0.002099"),
    ]
    assert (rows[0]["unpriced_entries"], rows[0]["avoided_cost"], rows[4]["wasted_cost"]) == (
        "2",
        "",
        "0.001606",
    )


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r"])
def test_text_that_a_spreadsheet_would_compute_begins_with_an_apostrophe(store: Store, sign: str) -> None:
    book(store, vlm_call("2026-11-02", model_id=f"{sign}2+3"), cpu_page("2026-11-02"))
    rows = csv_rows(stated(store, StatementBy.MODEL))
    assert [row["model"] for row in rows] == [f"'{sign}2+3", ""]


def test_documents_have_their_id_and_their_name(store: Store) -> None:
    book(store, cpu_page("2026-11-02"), cpu_page("2026-11-02", document_id=LETTER))
    rows = csv_rows(stated(store, StatementBy.DOCUMENT))
    assert [(row["document_id"], row["document"]) for row in rows] == [
        (INVOICE, f"'{NAMES[INVOICE]}"),
        (LETTER, ""),
    ]
    told = json.loads(json_text(stated(store, StatementBy.DOCUMENT), NAMES))
    assert [line["document"] for line in told["lines"]] == [NAMES[INVOICE], None]


def test_one_json_object_says_all(store: Store) -> None:
    every_kind(store)
    told: dict[str, Any] = json.loads(json_text(stated(store), {}))
    assert (told["from"], told["to"], told["by"]) == ("2026-11-01", "2026-12-01", "cost-centre")
    assert told["open_calls"] == {"calls": 2, "reserved_tokens": 5_000}
    assert told["unpriced"] == [{"model": "new-model", "entries": 1}, {"model": None, "entries": 1}]
    euros, dollars = told["totals"]
    assert (euros["currency"], euros["cost"], euros["forced_vlm"]) == ("EUR", "0.000493", None)
    assert (dollars["cost"], dollars["forced_vlm"]["cost"]) == ("0.002127", "0.000493")
    assert dollars["forced_share"] == pytest.approx(493 / 2_127)
    assert told["lines"][0]["cost"] is None


def test_without_pyarrow_parquet_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(SettingsError, match=r"pip install 'doctriage\[parquet\]'"):
        require_parquet()


def test_parquet_has_decimal_amounts(store: Store) -> None:
    pytest.importorskip("pyarrow", reason="Parquet not tested: pyarrow, an extra, is not installed")
    from pyarrow import parquet

    every_kind(store)
    table = parquet.read_table(io.BytesIO(parquet_bytes(stated(store), {})))
    rows = table.to_pylist()
    assert [row["cost"] for row in rows][:3] == [None, Decimal("0.000493"), Decimal("-0.000465")]
    assert rows[3]["is_forced_vlm"] is True
    assert rows[1]["prompt_tokens"] == 2_330
