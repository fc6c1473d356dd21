"""Prices derived from cost and throughput: a page pays for its time, and the text is a price book."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pipeline.chargeback.price_book import parse_price_book
from pipeline.chargeback.price_derivation import (
    CpuThroughput,
    DerivedPrices,
    GpuThroughput,
    derive_prices,
    derived_book_text,
)

COSTS = st.decimals("0", "1000", places=4)
PAGES = st.decimals("1", "1000000", places=1)
TOKENS = st.decimals("1", "30000", places=1)
WEIGHTS = st.decimals("0.01", "50", places=2)
SHARES = st.decimals("0", "1", places=2)


@st.composite
def gpus(draw: st.DrawFn) -> GpuThroughput:
    return GpuThroughput(
        hour_cost=draw(COSTS),
        pages_per_hour=draw(PAGES),
        prompt_tokens_per_page=draw(TOKENS),
        completion_tokens_per_page=draw(TOKENS),
        completion_weight=draw(WEIGHTS),
        cached_weight=draw(SHARES),
    )


CPUS = st.builds(CpuThroughput, hour_cost=COSTS, pages_per_hour=PAGES)
H100 = GpuThroughput(
    hour_cost=Decimal("3.50"),
    pages_per_hour=Decimal(6_000),
    prompt_tokens_per_page=Decimal(2_240),
    completion_tokens_per_page=Decimal(600),
    completion_weight=Decimal(4),
    cached_weight=Decimal("0.1"),
)
CORE = CpuThroughput(hour_cost=Decimal("0.05"), pages_per_hour=Decimal(1_800))


def test_an_h100_by_hand() -> None:
    """3.50 / 6,000 / (2,240 + 4 × 600) is 0.12571839… of a micro-unit."""
    assert derive_prices(H100, CORE) == DerivedPrices(
        prompt_micro=125_718, cached_micro=12_572, completion_micro=502_874, cpu_page_micro=27_777_778
    )


@given(gpus())
def test_the_pages_of_an_hour_pay_for_the_hour(gpu: GpuThroughput) -> None:
    """To half a micro-unit for a million tokens, which is what rounding the two prices may move."""
    prices = derive_prices(gpu)
    prompt, completion = Fraction(gpu.prompt_tokens_per_page), Fraction(gpu.completion_tokens_per_page)
    page = (prompt * prices.prompt_micro + completion * prices.completion_micro) / 10**12
    assert abs(page - gpu.page_cost) <= (prompt + completion) / 2 / 10**12


@given(gpus())
def test_with_a_weight_of_one_every_token_costs_the_same(gpu: GpuThroughput) -> None:
    level = GpuThroughput(
        hour_cost=gpu.hour_cost,
        pages_per_hour=gpu.pages_per_hour,
        prompt_tokens_per_page=gpu.prompt_tokens_per_page,
        completion_tokens_per_page=gpu.completion_tokens_per_page,
        completion_weight=Decimal(1),
        cached_weight=Decimal(1),
    )
    prices = derive_prices(level)
    assert prices.prompt_micro == prices.cached_micro == prices.completion_micro


@given(gpus(), st.none() | CPUS, st.sampled_from(["*", "org/name-7b", 'a "b" \\c', "モデル"]), st.dates())
def test_the_text_is_a_price_book_of_the_same_prices(
    gpu: GpuThroughput, cpu: CpuThroughput | None, model_id: str, day: date
) -> None:
    text = derived_book_text(gpu, cpu, currency="CHF", model_id=model_id, effective_from=day)
    book = parse_price_book(text, "derived")
    prices = derive_prices(gpu, cpu)
    (entry,) = book.entries
    assert (book.name, book.currency, entry.effective_from) == (f"derived-{day}", "CHF", day)
    assert entry.cpu_page_micro == prices.cpu_page_micro
    assert list(entry.models) == [model_id]
    model = entry.models[model_id]
    assert (model.prompt_micro, model.cached_micro) == (prices.prompt_micro, prices.cached_micro)
    assert model.completion_micro == prices.completion_micro


def test_the_comments_show_the_arithmetic() -> None:
    text = derived_book_text(H100, CORE, currency="USD", model_id="*", effective_from=date(2026, 1, 1))
    lines = [" ".join(line.split()) for line in text.splitlines() if line.startswith("#")]
    for told in (
        "# Amounts in USD. A visual token costs the same as a text one: prompt tokens are both.",
        "# a page on the GPU 3.50 an hour / 6,000 pages an hour 0.000583333",
        "# its tokens, weighted 2,240 of prompt + 4 × 600 of completion 4,640",
        "# a million prompt tokens 3.50 / 6,000 / 4,640 × 1,000,000 0.125718",
        "# of them cached 0.1 × the same 0.012572",
        "# a million completion tokens 4 × the same 0.502874",
        "# such a page at these prices (2,240 × 0.125718 + 600 × 0.502874) / 1,000,000 0.000583333",
        "# a page read on the CPU 0.05 an hour of a core / 1,800 pages an hour 0.000027777778",
    ):
        assert told in lines
