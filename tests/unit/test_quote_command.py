"""The quote command against a run that only answers: what it is asked, what it prints and keeps, its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from models.choices import RoutePolicy
from models.errors import SettingsError
from models.page import Route
from pipeline.chargeback.quote import Quote, QuotedDocument, QuoteTerms, Refusal, make_quote, over_all_pages
from pipeline.chargeback.quote_file import read_quote
from pipeline.chargeback.quote_pages import unread_page
from pipeline.chargeback.sample import draw_sample, over_sample, unseen_pages
from pipeline.chargeback.sample_size import SampleSize, sample_size
from pipeline.chargeback.saved_quote import SavedQuote
from pipeline.planning.configured import load_plan
from pipeline.settings import Settings, VlmSettings
from tests.unit.chargeback.quoted import PRICES, document, page
from workers import quoting
from workers.cli import app
from workers.events import Event

NOON = datetime(2024, 11, 30, 12, tzinfo=UTC)
TERMS = QuoteTerms(cost_centre="claims/2026", model_id="seven", prices=PRICES, begun_at=NOON, when=NOON)
NAME = "ab" * 32


def quoted(*documents: QuotedDocument, refusals: tuple[Refusal, ...] = (), **terms: object) -> Quote:
    made = replace(TERMS, **terms)
    return make_quote(documents, refusals, made, spread_over=over_all_pages(documents))


def sampled() -> Quote:
    pages = [page(number, Route.VLM if number % 3 else Route.OCR) for number in range(1, 101)]
    strata = draw_sample({NAME: 100}, 20)
    [stratum] = strata
    known = document(
        NAME, *(one for one in pages if (NAME, one.page_number) in stratum.drawn), page_count=100
    )
    unseen = unseen_pages([known], load_plan(VlmSettings()))
    spread = over_sample([known], strata, unseen)
    return make_quote([known], (), TERMS, spread_over=spread, sampled_pages=20)


class AnsweringRun:
    """Records what it is asked and answers with ``quote``."""

    def __init__(self, quote: Quote | None) -> None:
        self.quote = quote
        self.request: quoting.QuoteRequest | None = None
        self.settings: Settings | None = None

    def __call__(
        self, request: quoting.QuoteRequest, *, settings: Settings, on_event: Callable[[Event], None]
    ) -> Quote | None:
        self.request, self.settings = request, settings
        return self.quote


Asked = Callable[..., tuple[Result, AnsweringRun]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    monkeypatch.setenv("DOCTRIAGE_HOME", str(tmp_path / "state"))
    source = tmp_path / "a.pdf"
    source.write_bytes(b"%PDF-")

    def run(*options: str, quote: Quote | None = None) -> tuple[Result, AnsweringRun]:
        answering = AnsweringRun(quote)
        monkeypatch.setattr(quoting, "quote", answering)
        return CliRunner().invoke(app, ["quote", str(source), *options]), answering

    return run


def test_asks_for_what_the_options_say(ask: Asked, tmp_path: Path) -> None:
    (tmp_path / "passwords").write_text("one\n", encoding="utf-8")
    result, run = ask(
        "--sample", "10%",
        "--jobs", "3",
        "--engine", "paddleocr",
        "--lang", "eng+deu",
        "--route", "vlm",
        "--profile", "thrifty",
        "--vlm-profile", "qwen3-vl-8b-fp8",
        "--vlm-model", "eight",
        "--cost-centre", "claims/2026",
        "--password-file", str(tmp_path / "passwords"),
        quote=quoted(document(NAME, page(1))),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert run.request == quoting.QuoteRequest(
        paths=(tmp_path / "a.pdf",),
        cost_centre="claims/2026",
        passwords=("one",),
        sample=SampleSize(share=Fraction(1, 10)),
    )
    settings = run.settings
    assert settings is not None
    assert (settings.executor.jobs, settings.read.engine) == (3, "paddleocr")
    assert (settings.route, settings.triage.profile) == (RoutePolicy.VLM, "thrifty")
    assert (settings.vlm.profile, settings.vlm.model) == ("qwen3-vl-8b-fp8", "eight")


def test_says_pages_tokens_and_cost_with_what_is_unsure_against_the_other_ways(ask: Asked) -> None:
    pages = [page(1), page(2, Route.OCR), page(3, Route.TEXT_LAYER), page(4, Route.BLANK)]
    result, _ = ask(quote=quoted(document(NAME, *pages)))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert any(line.split() == [f"{NAME}.pdf", "4", "1", "1", "1", "1", "1,000"] for line in lines)
    assert "visual tokens" in result.stdout
    cost = next(line for line in lines if line.startswith("total, USD"))
    assert cost.split() == [
        *("total,", "USD"),
        *("about", "0.002220", "(0.001620", "–", "0.009070)"),
        *("about", "0.006420", "(0.004620", "–", "0.026970)"),
        "0.000120",
    ]
    assert "about 0.002220 USD, between 0.001620 and 0.009070, for claims/2026, by seven" in result.stdout
    assert "65% less than every page to the VLM" in result.stdout


def test_a_sample_says_its_size_and_ranges_for_every_number(ask: Asked) -> None:
    result, _ = ask(quote=sampled())
    assert result.exit_code == 0
    assert "a sample of 20 of 100 pages" in result.stdout
    row = next(line for line in result.stdout.splitlines() if line.startswith("visual tokens"))
    assert row.split()[2] == "about"


def test_what_has_no_price_is_unpriced(ask: Asked) -> None:
    without = replace(PRICES, prompt_micro_per_million=None)
    result, _ = ask(quote=quoted(document(NAME, page(1)), prices=without))
    lines = result.stdout.splitlines()
    cells = {
        line.split(",")[0]: line.split()[2] for line in lines if line.startswith(("CPU,", "VLM,", "total,"))
    }
    assert cells == {"CPU": "0.000030", "VLM": "unpriced", "total": "unpriced"}
    assert any(line.startswith("unpriced for claims/2026") for line in lines)


@pytest.mark.parametrize("bad", ["refused", "unread"])
def test_files_and_pages_that_could_not_be_read_are_listed_and_exit_with_1(ask: Asked, bad: str) -> None:
    refusal = Refusal(source="note.txt", code="unsupported_media_type", message="text, not a scan")
    if bad == "refused":
        quote = quoted(document(NAME, page(1)), refusals=(refusal,))
    else:
        quote = quoted(document(NAME, page(1), unread_page(2)))
    result, _ = ask(quote=quote)
    assert result.exit_code == 1
    assert ("note.txt" if bad == "refused" else "failed") in result.stdout


def test_json_is_what_is_saved_and_is_read_again(ask: Asked, tmp_path: Path) -> None:
    kept = tmp_path / "quote.json"
    quote = quoted(document(NAME, page(1), page(2, Route.OCR)))
    result, _ = ask("--json", "--save", str(kept), quote=quote)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads(kept.read_text(encoding="utf-8"))
    again = read_quote(kept)
    assert isinstance(again, SavedQuote)
    assert (again.cost_centre, again.price_book_version) == ("claims/2026", "ours-1")
    assert again.prices.per_million_prompt_tokens == "1"
    assert again.prices.per_cpu_page == "0.00003"
    [saved_document] = again.documents
    tokens = {one.page_number: (one.route, one.visual_tokens) for one in saved_document.pages}
    assert tokens == {1: (Route.VLM, 1_000), 2: (Route.OCR, None)}
    assert again.ways["triaged"].total_micro is not None
    assert again.sample is None


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff\xfe", b'{"schema_version": 2}', b"not json", b"{" * 100_000]
)
def test_a_file_that_is_no_quote_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "quote.json"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="name a file that doctriage quote --save wrote"):
        read_quote(path)
    with pytest.raises(SettingsError, match="No such file"):
        read_quote(tmp_path / "none.json")


def test_a_place_where_nothing_can_be_kept_is_refused_before_reading(ask: Asked, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "quote.json", tmp_path / "missing" / "quote.json"):
        result, run = ask("--save", str(place), quote=quoted())
        assert result.exit_code == 1
        assert "name" in str(result.exception)
        assert run.request is None
    assert not (tmp_path / "missing").exists()


def test_a_stopped_quote_exits_with_130_and_one_of_nothing_says_so(ask: Asked) -> None:
    result, _ = ask(quote=None)
    assert result.exit_code == 130
    assert "the same command goes on from here" in result.stderr
    result, _ = ask(quote=quoted())
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing to read" in result.stderr


@pytest.mark.parametrize("text", ["0", "-5", "0%", "101%", "ten", "1.5", "", "10 pages", "1e3", "٣"])
def test_a_sample_that_is_none_exits_with_2(ask: Asked, text: str) -> None:
    result, run = ask("--sample", text, quote=quoted())
    assert result.exit_code == 2
    assert run.request is None


@pytest.mark.parametrize(
    ("text", "page_count", "expected"),
    [
        ("200", 1_000, 200),
        ("200", 50, 50),
        ("10%", 1_000, 100),
        ("10 %", 15, 2),
        ("0.5%", 10, 1),
        ("100%", 7, 7),
    ],
)
def test_a_sample_is_a_number_of_pages_or_a_share_rounded_up(
    text: str, page_count: int, expected: int
) -> None:
    assert sample_size(text).of(page_count) == expected
