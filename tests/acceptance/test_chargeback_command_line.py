"""``doctriage chargeback`` as a user starts it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from PIL import Image
from pydantic import SecretStr

from models.document import Document, MediaType
from models.tables import VlmAttemptRow
from pipeline.chargeback.focus import COLUMNS
from pipeline.store import Store, open_store
from tests.acceptance.test_command_line import run_doctriage
from tests.fakes.ledger import (
    INVOICE,
    NOTHING,
    book,
    cache_hit,
    cpu_page,
    every_kind,
    reversal,
    vlm_call,
)

NOVEMBER = ("--from", "2026-11-01", "--to", "2026-12-01")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path)) as opened:
        yield opened


def named(store: Store, name: str = "invoice.pdf") -> int:
    """The document of most entries, as a source of that name; its reading's id."""
    document = Document(document_id=INVOICE, media_type=MediaType.PDF, byte_count=1, page_count=3)
    store.pages.save_document(document)
    reading_id = store.pages.open_reading(document, "f" * 64, force=False).reading_id
    submission_id = store.submissions.start_submission(
        out_dir="/out", cost_centre="retail", submitter="ada", fingerprint="f" * 64
    )
    store.submissions.add_source(submission_id, name=name, output_stem=name, reading_id=reading_id)
    return reading_id


def squeezed(text: str) -> list[str]:
    """Lines, with one space where there are several."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_this_month_by_cost_centre_with_totals_and_notes(tmp_path: Path, store: Store) -> None:
    now = datetime.now(UTC)
    today, last_month = now.date(), now.date().replace(day=1) - timedelta(days=1)
    book(
        store,
        cpu_page(today.isoformat(), cost_centre="retail/shop"),
        vlm_call(today.isoformat(), cost_centre="legal", is_forced=True),
        vlm_call(today.isoformat(), NOTHING, cost_centre="legal", model_id="new-model"),
        vlm_call(last_month.isoformat(), cost_centre="of-last-month"),
    )
    answer = run_doctriage("chargeback", home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = squeezed(answer.stdout)
    assert lines[0].startswith(f"By cost centre, from {today.replace(day=1)} up to, not including, ")
    assert "legal USD - 1 - 0.0 1 1 unpriced" in lines
    assert "legal, forced VLM USD - 1 - 0.0 1 - 0.000493" in lines
    assert "retail/shop USD 1 - 1 1.5 - - 0.000028" in lines
    assert "all USD 1 2 1 1.5 2 1 0.000521" in lines
    assert "forced VLM: 1 call, 0.000493 USD (94.6% of the cost)" in lines
    assert any(line.startswith("entries without a price, in no cost: new-model 1;") for line in lines)
    assert "of-last-month" not in answer.stdout


def test_a_month_in_which_nothing_is_booked_says_so(tmp_path: Path) -> None:
    answer = run_doctriage("chargeback", *NOVEMBER, home=tmp_path)
    assert answer.returncode == 0
    assert answer.stdout == "nothing is booked from 2026-11-01 up to, not including, 2026-12-01 (UTC)\n"


def test_the_same_statement_as_csv_and_json(tmp_path: Path, store: Store) -> None:
    every_kind(store)
    out = tmp_path / "november.csv"
    written = run_doctriage(
        "chargeback", *NOVEMBER, "--by", "team", "--format", "csv", "--out", out, home=tmp_path
    )
    assert (written.returncode, written.stdout) == (0, "")
    assert written.stderr.splitlines()[-1] == f"statement written to {out}"
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"), newline="")))
    printed = run_doctriage("chargeback", *NOVEMBER, "--by", "team", "--format", "json", home=tmp_path)
    told = json.loads(printed.stdout)
    assert [(row["team"], row["currency"], row["cost"] or None) for row in rows] == [
        (line["team"], line["currency"], line["cost"]) for line in told["lines"]
    ]
    assert "new-model 1, CPU 1" in printed.stderr


def test_the_focus_export_adds_up_to_the_bill_and_says_what_is_not_in_it(
    tmp_path: Path, store: Store
) -> None:
    every_kind(store)
    answer = run_doctriage("chargeback", *NOVEMBER, "--format", "focus", home=tmp_path)
    assert answer.returncode == 0
    rows = list(csv.DictReader(io.StringIO(answer.stdout, newline="")))
    assert tuple(rows[0]) == COLUMNS
    dollars = [Decimal(row["BilledCost"]) for row in rows if row["BillingCurrency"] == "USD"]
    assert sum(dollars) == Decimal("0.002127")
    assert "entries without a price, in no cost: new-model 1, CPU 1" in answer.stderr


def test_a_chart_is_drawn_beside_the_statement(tmp_path: Path, store: Store) -> None:
    every_kind(store)
    for name in ("chart.png", "chart.HTML"):
        answer = run_doctriage("chargeback", *NOVEMBER, "--chart", tmp_path / name, home=tmp_path)
        assert answer.returncode == 0
        assert answer.stderr == f"chart written to {tmp_path / name}\n"
        assert "research/ocr" in answer.stdout
    with Image.open(tmp_path / "chart.png") as picture:
        assert picture.format == "PNG"
    assert (tmp_path / "chart.HTML").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_every_entry_about_a_page_is_explained_with_its_arithmetic(tmp_path: Path, store: Store) -> None:
    reading_id = named(store)
    wasted = vlm_call(
        "2026-11-03", outcome="truncated", attempt=1, is_wasted=True, vlm_pages=0, completion_tokens=2_048
    )
    book(store, cpu_page("2026-11-03", avoided_tokens=0), wasted, cpu_page("2026-11-03", page_number=2))
    book(store, vlm_call("2026-11-03", attempt=2), reversal(wasted, "2026-11-04"))
    book(store, cache_hit("2026-11-05", 3), vlm_call("2026-11-05", NOTHING, attempt=3, model_id="new-model"))
    with store.database.write() as session:
        session.add(
            VlmAttemptRow(
                **dict.fromkeys(("attempt", "width_px", "height_px", "predicted_visual_tokens"), 1),
                **dict.fromkeys(("temperature", "started_at_s"), 1.0),
                **dict.fromkeys(("request_id", "model_id", "tier"), "x"),
                reading_id=reading_id,
                page_number=1,
            )
        )
    answer = run_doctriage("chargeback", "explain", "invoice.pdf", "--page", "1", home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = squeezed(answer.stdout)
    assert lines[0].startswith("invoice.pdf, page 1, document abababababab")
    assert "page on the CPU 1 × 27.777778 = 0.000027777778" in lines
    assert "prompt tokens 2,240 × 0.125718 = 0.00028160832" in lines
    assert "cached prompt tokens 90 × 0.062859 = 0.00000565731" in lines
    assert "completion tokens -2,048 × 0.502874 = -0.001029885952" in lines
    assert "prompt tokens 2,240 unpriced" in lines
    assert "pages of an earlier run 3 × 0.000000 = 0" in lines
    assert "together: 0.000521 USD; 1 without a price" in lines
    assert "open calls to the VLM: 1; each is booked when it ends" in lines
    assert any("VLM call 1: truncated" in line and "0.001317 USD" in line for line in lines)
    assert any("takes back entry 2" in line and "-0.001317 USD" in line for line in lines)
    statement = run_doctriage("chargeback", *NOVEMBER, home=tmp_path)
    assert statement.stdout.splitlines()[-1] == "open: 1 call to the VLM; booked when they end"


def test_a_page_that_the_ledger_does_not_know_is_said_so(tmp_path: Path, store: Store) -> None:
    named(store)
    named(store, "copy of the invoice.pdf")
    book(store, cache_hit("2026-11-05", 3))
    answer = run_doctriage("chargeback", "explain", "invoice.pdf", "--page", "3", home=tmp_path)
    assert answer.returncode == 1
    assert answer.stderr == "doctriage: invoice.pdf: the ledger has nothing about page 3\n"
    other = run_doctriage("chargeback", "explain", "letter.pdf", "--page", "1", home=tmp_path)
    assert other.returncode == 1
    assert "not ingested yet" in other.stderr
    short = run_doctriage("chargeback", "explain", "dd3ff", "--page", "1", home=tmp_path)
    assert short.returncode == 1
    assert "dd3ff: no source has that name; of a document's id, give at least 8 digits" in short.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--from", "2026-12-01", "--to", "2026-12-01"], "not after"),
        (["--from", "yesterday"], "'--from': 'yesterday' is no day; write one like 2026-11-30"),
        (["--to", "2026-02-31"], "'--to': '2026-02-31' is no day"),
        (["--from", "9999-12-31"], "no day is after 9999-12-31"),
        (["--to", "0001-01-01"], "no day is before 0001-01-01"),
        (["--by", "colour"], "'colour' is none of cost-centre, team,"),
        (["--format", "xml"], "'xml' is none of table, csv,"),
        (["--format", "parquet"], "--out"),
        (["--format", "focus", "--by", "team"], "leave it out"),
        (["--chart", "chart.pdf"], ".png or .html"),
        (["--out", ""], "it is empty"),
        (["--out", "missing/bill.csv"], "there is no folder"),
        (["--chart", "missing/chart.png"], "there is no folder"),
        (
            ["reconcile", "--vlm-url", "http://127.0.0.1:9/v1", "--save", "missing/now.json"],
            "there is no folder",
        ),
        (["--by", "team", "explain", "a.pdf", "--page", "1"], "--by belongs to"),
        (["explain", "a.pdf"], "--page"),
        (["explain", "a.pdf", "--page", "0"], "'0' is no whole number of 1 or more"),
        (["reconcile"], "--vlm-url"),
        (["reconcile", "--vlm-url", "http://127.0.0.1:9/v1", "--since", "missing.json"], "--save wrote"),
        (["reconcile", "--tolerance", "-1"], "--tolerance"),
    ],
)
def test_wrong_usage_is_one_clear_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    answer = run_doctriage("chargeback", *arguments, home=tmp_path)
    assert answer.returncode == 2
    assert told in " ".join(answer.stderr.replace("│", " ").split())
    assert "Traceback" not in answer.stderr


def test_a_file_that_cannot_be_written_is_said_so(tmp_path: Path, store: Store) -> None:
    every_kind(store)
    (tmp_path / "folder").mkdir()
    for option in ("--out", "--chart"):
        place = tmp_path / "folder" / "x.png"
        place.mkdir(exist_ok=True)
        answer = run_doctriage("chargeback", *NOVEMBER, option, place, home=tmp_path)
        assert answer.returncode == 2
        assert str(place) in answer.stderr
        assert "Traceback" not in answer.stderr


def test_statements_are_read_from_postgresql_too(tmp_path: Path, postgres_url: SecretStr) -> None:
    store = open_store(tmp_path / "other", postgres_url)
    every_kind(store)
    store.close()
    answer = run_doctriage(
        *("chargeback", *NOVEMBER, "--by", "team", "--format", "json"),
        home=tmp_path,
        DOCTRIAGE_DATABASE_URL=postgres_url.get_secret_value(),
    )
    told = json.loads(answer.stdout)
    assert [total["cost"] for total in told["totals"]] == ["0.000493", "0.002127"]
