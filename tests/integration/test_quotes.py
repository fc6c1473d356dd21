"""What a quote reads, says and leaves behind, and whether the ingest after it costs what was quoted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.choices import RoutePolicy
from models.errors import PriceBookInvalid
from models.page import Route
from pipeline.chargeback.call_estimate import Estimate
from pipeline.chargeback.quote_file import saved
from pipeline.chargeback.quote_pages import Way
from pipeline.settings import Settings
from tests.fakes.pages import page_image, write_tiff
from tests.fakes.vlm_server import Fault
from tests.fakes.wordy_ocr import DOUBTFUL_FROM_PX, WordyEngines
from tests.integration.quote_runs import billed_by_page, quote_of, tokens_by_page, whole_quote
from tests.integration.vlm_runs import (
    BUDGET,
    FakeVlm,
    VlmBench,
    answer_on,
    by_page,
    fake_vlm,
    nothing_left_behind,
)
from workers.events import DocumentRejectedEvent, Event, IngestRequest, PageAwaitsVlm, PagesChosen
from workers.local import ingest
from workers.quoted_bill import compare_with_bill
from workers.quoting import QuoteRequest, quote

SAMPLES = Path(__file__).parent.parent.parent / "samples"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[VlmBench]:
    with nothing_left_behind():
        made = VlmBench(tmp_path / "bench")
        made.route = RoutePolicy.AUTO
        yield made


def doubtful_and_sure(bench: VlmBench) -> None:
    """Three pages of different sizes that need the VLM, and two that do not."""
    widths = range(DOUBTFUL_FROM_PX, DOUBTFUL_FROM_PX + 3)
    write_tiff(
        bench.inputs / "a.tif",
        [
            page_image("doubtful", width_px=width, height_px=height)
            for width, height in zip(widths, (200, 1_500, 1_800), strict=True)
        ],
    )
    bench.document(2, "sure.tif")


def test_an_ingest_after_a_quote_reads_nothing_again_and_calls_with_the_tokens_that_were_quoted(
    bench: VlmBench,
) -> None:
    doubtful_and_sure(bench)
    made = whole_quote(bench)
    assert set(bench.ocr_readings().values()) == {1}
    assert not bench.out.exists()
    counts = {name: pages.about for name, pages in made.pages_by_route.items() if pages.about}
    assert counts == {"vlm": 3, "ocr": 2}
    assert len(set(tokens_by_page(made).values())) == 3

    with fake_vlm(answer=answer_on(DOUBTFUL_FROM_PX)) as fake:
        report = bench.run(fake.base_url)
    assert set(bench.ocr_readings().values()) == {1}
    assert report.pages_read == 3
    assert report.pages_from_earlier_run == 2
    assert [page["route"] for page in bench.pages()] == [Route.VLM] * 3
    assert billed_by_page(bench) == tokens_by_page(made)
    assert_bill_is_within(bench, made.ways[Way.TRIAGED].total_micro)
    comparison = compare_with_bill(saved(made), Settings(home=bench.home))
    assert (comparison.differing, comparison.waiting, comparison.calls) == ((), (), 3)
    rows = (*comparison.pages.values(), *comparison.tokens.values(), *comparison.costs.values())
    assert all(row.is_within for row in rows)
    assert {name: row.billed for name, row in comparison.pages.items() if row.billed} == {
        "vlm": 3,
        "ocr": 2,
        "cpu_pages": 5,
        "calls": 3,
    }


def assert_bill_is_within(bench: VlmBench, quoted: Estimate | None) -> None:
    assert quoted is not None
    [(billed,)] = bench.query("SELECT sum(cost_micro) FROM ledger")
    assert quoted.low <= billed <= quoted.high


def test_pages_read_for_a_quote_are_booked_on_the_cost_centre_and_not_again(bench: VlmBench) -> None:
    doubtful_and_sure(bench)
    made = whole_quote(bench, cost_centre="claims/2026")
    booked = (
        "SELECT count(*), sum(cpu_pages), sum(cost_micro), min(cost_centre), max(submission_id) FROM ledger"
    )
    cpu_micro = made.ways[Way.TRIAGED].cpu_micro
    assert cpu_micro is not None
    assert bench.query(booked) == [(5, 5, cpu_micro.about, "claims/2026", 1)]
    with fake_vlm(answer=answer_on(DOUBTFUL_FROM_PX)) as fake:
        bench.run(fake.base_url, cost_centre="claims/2026")
    assert bench.query(f"{booked} WHERE kind = 'cpu_page'") == [(5, 5, cpu_micro.about, "claims/2026", 1)]
    assert bench.query("SELECT finished_at_s IS NOT NULL FROM submissions") == [(1,), (1,)]


def test_a_quote_asks_no_vlm_though_one_is_configured(bench: VlmBench) -> None:
    doubtful_and_sure(bench)
    with fake_vlm() as fake:
        made = whole_quote(bench, vlm={"url": fake.base_url})
    assert fake.seen == []
    assert made.ways[Way.TRIAGED].calls == Estimate.exactly(3)
    waiting = [event for event in bench.events if isinstance(event, PageAwaitsVlm)]
    assert [event.from_earlier_run for event in waiting] == [False] * 3


def test_what_an_ingest_has_read_and_sent_costs_nothing_in_a_later_quote(bench: VlmBench) -> None:
    doubtful_and_sure(bench)
    with fake_vlm(answer=answer_on(DOUBTFUL_FROM_PX)) as fake:
        bench.run(fake.base_url)
    bench.document(1, "new.tif", first_width_px=DOUBTFUL_FROM_PX + 9)
    made = whole_quote(bench)
    assert set(bench.ocr_readings().values()) == {1}
    triaged = made.ways[Way.TRIAGED]
    assert (triaged.calls, triaged.cpu_pages) == (Estimate.exactly(1), Estimate.exactly(1))
    assert made.pages_by_route["vlm"] == Estimate.exactly(4)
    assert len(tokens_by_page(made)) == 1


def test_pages_that_an_ingest_without_a_vlm_has_read_are_not_read_for_a_quote(bench: VlmBench) -> None:
    doubtful_and_sure(bench)
    settings = Settings(home=bench.home, executor={"jobs": 1, "page_timeout_s": 60})
    request = IngestRequest(paths=(bench.inputs,), out_dir=bench.out)
    engines = WordyEngines(ocr=bench.ocr)
    ingest(request, settings=settings, on_event=lambda _: None, engine_builder=engines)
    made = whole_quote(bench)
    assert set(bench.ocr_readings().values()) == {1}
    assert made.ways[Way.TRIAGED].cpu_pages == Estimate.exactly(0)
    assert made.ways[Way.TRIAGED].calls == Estimate.exactly(3)


def test_a_page_that_is_called_again_is_billed_within_the_range_and_its_first_call_as_quoted(
    bench: VlmBench,
) -> None:
    bench.route = RoutePolicy.VLM
    bench.document(10, height_px=900)
    made = whole_quote(bench)
    with fake_vlm(by_page({1: Fault.TRUNCATED}, calls=1)) as fake:
        bench.run(fake.base_url)
        assert len(fake.seen) == 11
    assert billed_by_page(bench) == tokens_by_page(made)
    assert_bill_is_within(bench, made.ways[Way.TRIAGED].total_micro)
    assert made.ways[Way.TRIAGED] == made.ways[Way.ALL_VLM]


def test_a_sample_is_read_alone_and_its_interval_holds_what_all_pages_come_to(bench: VlmBench) -> None:
    for number, first_width_px in enumerate((500, 660, 690, 720)):
        bench.document(20, f"{number}.tif", first_width_px=first_width_px)
    sampled = whole_quote(bench, sample=30)
    assert sampled.sampled_pages == sum(bench.ocr_readings().values()) == 30
    [chosen] = [event.count for event in bench.events if isinstance(event, PagesChosen)]
    assert chosen == 30
    assert [document.page_count for document in sampled.documents] == [20] * 4
    assert {len(document.pages) for document in sampled.documents} <= {7, 8}

    again = whole_quote(bench, sample=30)
    assert sum(bench.ocr_readings().values()) == 30
    assert tokens_by_page(again) == tokens_by_page(sampled)

    exact = whole_quote(bench)
    assert set(bench.ocr_readings().values()) == {1}
    assert exact.sampled_pages is None
    for way in Way:
        guess, truth = sampled.ways[way], exact.ways[way]
        assert guess.calls.low <= truth.calls.about <= guess.calls.high
        assert guess.visual_tokens.low <= truth.visual_tokens.about <= guess.visual_tokens.high
    assert sampled.ways[Way.TRIAGED].calls.low < sampled.ways[Way.TRIAGED].calls.high


@pytest.mark.parametrize("sample", [5, 500])
def test_a_sample_of_all_pages_is_a_whole_quote(bench: VlmBench, sample: int) -> None:
    doubtful_and_sure(bench)
    made = whole_quote(bench, sample=sample)
    assert made.sampled_pages is None
    assert made.ways[Way.TRIAGED].calls == Estimate.exactly(3)


def test_equal_bytes_are_quoted_once_and_bad_files_are_listed_and_stop_nothing(bench: VlmBench) -> None:
    original = bench.document(2, first_width_px=DOUBTFUL_FROM_PX)
    shutil.copy(original, bench.inputs / "b.tif")
    (bench.inputs / "note.txt").write_text("no scan")
    (bench.inputs / "torn.tif").write_bytes(b"II*\x00" + bytes(200))
    for sample in (None, 1):
        made = whole_quote(bench, sample=sample)
        assert [document.sources for document in made.documents] == [("a.tif", "b.tif")]
        assert made.page_count == 2
        assert [refusal.source for refusal in made.refusals] == ["note.txt", "torn.tif"]
        assert sum(isinstance(event, DocumentRejectedEvent) for event in bench.events) == 2


def test_an_empty_folder_and_one_of_bad_files_cost_nothing(bench: VlmBench) -> None:
    for sample in (None, 10):
        made = whole_quote(bench, sample=sample)
        assert (made.documents, made.refusals, made.page_count) == ((), (), 0)
        assert made.ways[Way.TRIAGED].total_micro == Estimate.exactly(0)
    (bench.inputs / "note.txt").write_text("no scan")
    assert whole_quote(bench, sample=10).page_count == 0


def test_ctrl_c_gives_no_quote_and_keeps_what_was_read(bench: VlmBench) -> None:
    bench.document(6)

    def interrupt(event: Event) -> None:
        if sum(bench.ocr_readings().values()) >= 2:
            raise KeyboardInterrupt

    assert quote_of(bench, on_event=interrupt) is None
    assert bench.query("SELECT count(*) FROM pages WHERE lease_owner IS NOT NULL") == [(0,)]
    whole_quote(bench)
    [(kept,)] = bench.query("SELECT count(*) FROM ledger WHERE kind = 'cpu_page' AND submission_id = 1")
    assert kept >= 1
    assert bench.query("SELECT count(*) FROM ledger WHERE kind = 'cpu_page'") == [(6,)]


def test_a_model_without_a_price_is_unpriced_and_a_broken_price_book_stops_it_before_reading(
    bench: VlmBench, tmp_path: Path
) -> None:
    doubtful_and_sure(bench)
    book = tmp_path / "prices.toml"
    book.write_text('schema_version = 1\nname = "ours"\n')
    with pytest.raises(PriceBookInvalid):
        quote_of(bench, chargeback={"price_book_file": book})
    assert bench.ocr_readings() == {}
    book.write_text(
        'schema_version = 1\nname = "ours"\ncurrency = "EUR"\n'
        '[[entries]]\neffective_from = 2020-01-01\nper_cpu_page = "0.01"\n'
    )
    triaged = whole_quote(bench, chargeback={"price_book_file": book}).ways[Way.TRIAGED]
    assert (triaged.vlm_micro, triaged.total_micro) == (None, None)
    assert triaged.cpu_micro == Estimate.exactly(50_000)
    assert triaged.visual_tokens.about > 0


@pytest.mark.slow
def test_real_pages_turned_and_straightened_are_sent_with_the_tokens_that_were_quoted(
    tmp_path: Path,
) -> None:
    """By the real engines. Whatever the answers are worth, each page's first call is the one that was quoted."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for name in ("skewed_brochure.jpg", "rotated_brochure.jpg", "mixed.pdf", "typewritten_dutch.jpg"):
        shutil.copy(SAMPLES / name, inputs)
    with FakeVlm(budget=BUDGET) as fake:
        settings = Settings(
            home=tmp_path / "home",
            route=RoutePolicy.VLM,
            read={"second_opinion": False},
            executor={"jobs": 1},
            vlm={"url": fake.base_url, "max_answers": 1},
        )
        made = quote(QuoteRequest(paths=(inputs,)), settings=settings, on_event=lambda _: None)
        assert made is not None
        assert fake.seen == []
        report = ingest(
            IngestRequest(paths=(inputs,), out_dir=tmp_path / "out"),
            settings=settings,
            on_event=lambda _: None,
        )
    bench = VlmBench(tmp_path / "books")
    bench.home = tmp_path / "home"
    assert billed_by_page(bench) == tokens_by_page(made)
    comparison = compare_with_bill(saved(made), settings)
    assert (comparison.differing, comparison.waiting) == ((), ())
    assert len(fake.seen) == 6
    assert report.visual_tokens_triaged == sum(tokens_by_page(made).values())
    assert bench.query("SELECT count(*) FROM ledger WHERE kind = 'cpu_page'") == [(6,)]
