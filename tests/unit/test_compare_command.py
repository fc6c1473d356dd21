"""``doctriage chargeback compare`` and ``ingest --quote``: what they ask, print and exit with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from models.errors import SettingsError
from models.page import Route
from pipeline.chargeback.quote import QuoteTerms, make_quote, over_all_pages
from pipeline.chargeback.quote_comparison import BilledEntry, Comparison, compare
from pipeline.chargeback.quote_file import saved
from pipeline.chargeback.saved_quote import SavedQuote
from pipeline.settings import Settings
from tests.fakes.reports import document_report, ingest_report
from tests.unit.chargeback.quoted import NAME, PRICES, called, document, page, read
from workers import local, quoted_bill
from workers.cli import app
from workers.events import DocumentReport, Event, IngestReport, IngestRequest

NOON = datetime(2024, 11, 30, 12, tzinfo=UTC)
AS_QUOTED = (read(1), read(2, "ocr"), called(1))


def quote_file(folder: Path, *, cost_centre: str = "default") -> Path:
    terms = QuoteTerms(cost_centre=cost_centre, model_id="seven", prices=PRICES, begun_at=NOON, when=NOON)
    documents = [document(NAME, page(1), page(2, Route.OCR))]
    quote = make_quote(documents, (), terms, spread_over=over_all_pages(documents))
    path = folder / "quote.json"
    path.write_text(saved(quote).model_dump_json(), encoding="utf-8")
    return path


Billed = Callable[[Sequence[BilledEntry]], None]


@pytest.fixture
def bill(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Billed:
    monkeypatch.setenv("DOCTRIAGE_HOME", str(tmp_path / "state"))

    def booked(entries: Sequence[BilledEntry]) -> None:
        def answer(quote: SavedQuote, settings: Settings) -> Comparison:
            return compare(quote, entries)

        monkeypatch.setattr(quoted_bill, "compare_with_bill", answer)

    return booked


def compared(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["chargeback", "compare", *map(str, arguments)])


def row_of(result: Result, heading: str) -> list[str]:
    return next(line for line in result.stdout.splitlines() if line.startswith(heading)).split()


def test_a_bill_as_quoted_is_said_to_be_one(bill: Billed, tmp_path: Path) -> None:
    bill(AS_QUOTED)
    result = compared(quote_file(tmp_path))
    assert result.exit_code == 0
    assert row_of(result, "visual tokens")[4:] == ["1,000", "1,000", "-", "as", "quoted"]
    assert row_of(result, "total, USD")[2:] == [
        *("about", "0.002160", "(0.001560", "–", "0.009010)", "0.002160", "-", "as", "quoted")
    ]
    assert "1 page sent, each first call with the visual tokens that were quoted for it" in result.stdout


def test_a_page_of_other_tokens_is_named_and_exits_with_1(bill: Billed, tmp_path: Path) -> None:
    bill((*AS_QUOTED[:2], called(1, tokens=640)))
    result = compared(quote_file(tmp_path))
    assert result.exit_code == 1
    assert row_of(result, f"{NAME}.pdf") == [f"{NAME}.pdf", "1", "1,000", "640"]
    assert "not as quoted" in result.stdout
    assert "each first call" not in result.stdout


def test_pages_that_wait_second_calls_and_missing_prices_are_told(bill: Billed, tmp_path: Path) -> None:
    path = quote_file(tmp_path)
    bill(AS_QUOTED[:2])
    assert f"1 page quoted for the VLM had no call yet: {NAME}.pdf 1" in compared(path).stdout
    bill((*AS_QUOTED, replace(called(1), cost_micro=None)))
    result = compared(path)
    assert "1 call made again" in result.stdout
    assert "1 attempt unpriced" in result.stdout
    assert row_of(result, "VLM, USD")[-1] == "unpriced"


def test_without_a_bill_there_is_nothing_to_compare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCTRIAGE_HOME", str(tmp_path / "state"))
    result = compared(quote_file(tmp_path))
    assert (result.exit_code, result.stdout) == (
        0,
        "nothing is billed to default for these documents since the quote of 2024-11-30 12:00 (UTC)\n",
    )


def test_a_file_that_is_no_quote_is_refused(tmp_path: Path) -> None:
    result = compared(tmp_path / "none.json")
    assert isinstance(result.exception, SettingsError)


class AnsweringExecutor:
    def __init__(self, report: IngestReport) -> None:
        self.report = report
        self.is_asked = False

    def __call__(
        self, request: IngestRequest, *, settings: Settings, on_event: Callable[[Event], None]
    ) -> IngestReport:
        self.is_asked = True
        return self.report


def ingested(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    quote: Path,
    *options: str,
    documents: Sequence[DocumentReport] = (document_report(),),
    **report: bool,
) -> tuple[Result, AnsweringExecutor]:
    (folder / "a.pdf").write_bytes(b"%PDF-")
    executor = AnsweringExecutor(ingest_report(*documents, **report))
    monkeypatch.setattr(local, "ingest", executor)
    arguments = [
        "ingest",
        str(folder / "a.pdf"),
        "--out",
        str(folder / "out"),
        "--quote",
        str(quote),
        *options,
    ]
    return CliRunner().invoke(app, arguments), executor


def test_an_ingest_with_a_quote_ends_with_the_comparison(
    bill: Billed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bill(AS_QUOTED)
    result, _ = ingested(monkeypatch, tmp_path, quote_file(tmp_path))
    assert result.exit_code == 0
    assert result.stdout.index("written to") < result.stdout.index("Quoted and billed")
    stopped, _ = ingested(monkeypatch, tmp_path, quote_file(tmp_path), is_interrupted=True)
    assert "Quoted and billed" not in stopped.stdout


def test_documents_that_are_only_in_the_run_or_only_in_the_quote_are_said(
    bill: Billed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bill(AS_QUOTED)
    quote = quote_file(tmp_path)
    same, _ = ingested(monkeypatch, tmp_path, quote)
    assert "not in" not in same.stdout
    others = [replace(document_report(f"{digit}.pdf"), document_id=str(digit) * 64) for digit in range(5)]
    copy = replace(document_report("copy.pdf", same_bytes_as="0.pdf"), document_id=others[0].document_id)
    result, _ = ingested(monkeypatch, tmp_path, quote, documents=(document_report(), *others, copy))
    assert "5 documents of this run are not in the quote: 0.pdf, 1.pdf, 2.pdf and 2 more;" in result.stdout
    assert "of the quote" not in result.stdout
    result, _ = ingested(monkeypatch, tmp_path, quote, documents=others[:1])
    assert (
        "1 document of this run is not in the quote: 0.pdf; what follows is about the quote's"
        in result.stdout
    )
    assert (
        f"1 document of the quote is not in this run: {NAME}.pdf; what other runs were billed"
        in result.stdout
    )
    assert result.stdout.index("not in this run") < result.stdout.index("Quoted and billed")


def test_the_quote_of_another_cost_centre_or_none_at_all_is_refused_before_reading(
    bill: Billed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bill(AS_QUOTED)
    quote = quote_file(tmp_path, cost_centre="claims")
    result, executor = ingested(monkeypatch, tmp_path, quote)
    assert isinstance(result.exception, SettingsError)
    assert "give --cost-centre claims" in str(result.exception)
    assert not executor.is_asked
    result, executor = ingested(monkeypatch, tmp_path, quote, "--cost-centre", "claims")
    assert (result.exit_code, executor.is_asked) == (0, True)
    quote.write_text("{}")
    result, executor = ingested(monkeypatch, tmp_path, quote)
    assert isinstance(result.exception, SettingsError)
    assert not executor.is_asked
