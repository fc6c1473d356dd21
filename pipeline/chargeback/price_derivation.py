"""Prices from what a GPU costs an hour and how many pages it reads in that hour, with the arithmetic shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

from pipeline.chargeback.amounts import (
    CPU_PRICE_DECIMALS,
    MILLION,
    TOKEN_PRICE_DECIMALS,
    amount_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuThroughput:
    """``hour_cost`` is in units of the currency. ``pages_per_hour`` is measured over the hours that are paid for, idle
    ones included. ``prompt_tokens_per_page`` are visual and text tokens alike. The weights are GPU time, that of an
    uncached prompt token being 1. All above 0, but ``hour_cost`` may be 0, and ``cached_weight`` is from 0 to 1."""

    hour_cost: Decimal
    pages_per_hour: Decimal
    prompt_tokens_per_page: Decimal
    completion_tokens_per_page: Decimal
    completion_weight: Decimal
    cached_weight: Decimal

    @property
    def page_cost(self) -> Fraction:
        return Fraction(self.hour_cost) / Fraction(self.pages_per_hour)

    @property
    def weighted_tokens_per_page(self) -> Fraction:
        written = Fraction(self.completion_tokens_per_page) * Fraction(self.completion_weight)
        return Fraction(self.prompt_tokens_per_page) + written


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuThroughput:
    """One core's: ``hour_cost`` in units of the currency, from 0; pages above 0."""

    hour_cost: Decimal
    pages_per_hour: Decimal

    @property
    def page_cost(self) -> Fraction:
        return Fraction(self.hour_cost) / Fraction(self.pages_per_hour)


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedPrices:
    """Micro-units for a million tokens or pages; ``cpu_page_micro`` is None where no CPU was given. A page of the
    tokens it was derived from costs what the GPU's time for it does, to the rounding of the prices."""

    prompt_micro: int
    cached_micro: int
    completion_micro: int
    cpu_page_micro: int | None


def derive_prices(gpu: GpuThroughput, cpu: CpuThroughput | None = None) -> DerivedPrices:
    """Share the cost of a page among its tokens by their weights. Each price is rounded once, half to even."""
    prompt = gpu.page_cost / gpu.weighted_tokens_per_page * MILLION * 10**TOKEN_PRICE_DECIMALS
    return DerivedPrices(
        prompt_micro=round(prompt),
        cached_micro=round(prompt * Fraction(gpu.cached_weight)),
        completion_micro=round(prompt * Fraction(gpu.completion_weight)),
        cpu_page_micro=None if cpu is None else round(cpu.page_cost * 10**CPU_PRICE_DECIMALS),
    )


def derived_book_text(
    gpu: GpuThroughput, cpu: CpuThroughput | None, *, currency: str, model_id: str, effective_from: date
) -> str:
    """A price book in TOML whose comments show the arithmetic. ``model_id`` holds printable characters only."""
    prices = derive_prices(gpu, cpu)
    per_cpu_page = (
        "# per_cpu_page is not set: pages read on the CPU are unpriced."
        if prices.cpu_page_micro is None
        else f'per_cpu_page = "{amount_text(prices.cpu_page_micro, CPU_PRICE_DECIMALS)}"'
    )
    lines = (
        *_arithmetic_comments(gpu, cpu, prices, currency),
        "schema_version = 1",
        f'name = "derived-{effective_from}"',
        f'currency = "{currency}"',
        "",
        "[[entries]]",
        f"effective_from = {effective_from}",
        per_cpu_page,
        "",
        f"[entries.models.{json.dumps(model_id, ensure_ascii=False)}]",
        f'per_million_prompt_tokens = "{_price(prices.prompt_micro)}"',
        f'per_million_cached_tokens = "{_price(prices.cached_micro)}"',
        f'per_million_completion_tokens = "{_price(prices.completion_micro)}"',
    )
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Step:
    what: str
    how: str
    value: str


def _arithmetic_comments(
    gpu: GpuThroughput, cpu: CpuThroughput | None, prices: DerivedPrices, currency: str
) -> Iterator[str]:
    yield f"# Amounts in {currency}. A visual token costs the same as a text one: prompt tokens are both."
    steps = (*_gpu_steps(gpu, prices), *_cpu_steps(cpu, prices))
    what_width = max(len(step.what) for step in steps)
    how_width = max(len(step.how) for step in steps)
    for step in steps:
        yield f"#   {step.what:{what_width}}   {step.how:{how_width}}   {step.value}"
    yield "# Each price is rounded once, half to even."
    yield ""


def _gpu_steps(gpu: GpuThroughput, prices: DerivedPrices) -> Iterator[_Step]:
    hour, pages = f"{gpu.hour_cost:,}", f"{gpu.pages_per_hour:,}"
    read, written = f"{gpu.prompt_tokens_per_page:,}", f"{gpu.completion_tokens_per_page:,}"
    weighted = f"{gpu.prompt_tokens_per_page + gpu.completion_weight * gpu.completion_tokens_per_page:,}"
    prompt, completion = _price(prices.prompt_micro), _price(prices.completion_micro)
    yield _Step("a page on the GPU", f"{hour} an hour / {pages} pages an hour", _rounded(gpu.page_cost))
    yield _Step(
        "its tokens, weighted",
        f"{read} of prompt + {gpu.completion_weight:,} × {written} of completion",
        weighted,
    )
    yield _Step("a million prompt tokens", f"{hour} / {pages} / {weighted} × 1,000,000", prompt)
    yield _Step("  of them cached", f"{gpu.cached_weight:,} × the same", _price(prices.cached_micro))
    yield _Step("a million completion tokens", f"{gpu.completion_weight:,} × the same", completion)
    how = f"({read} × {prompt} + {written} × {completion}) / 1,000,000"
    yield _Step("such a page at these prices", how, _rounded(_billed(gpu, prices)))


def _cpu_steps(cpu: CpuThroughput | None, prices: DerivedPrices) -> Iterator[_Step]:
    if cpu is None or prices.cpu_page_micro is None:
        return
    yield _Step(
        "a page read on the CPU",
        f"{cpu.hour_cost:,} an hour of a core / {cpu.pages_per_hour:,} pages an hour",
        amount_text(prices.cpu_page_micro, CPU_PRICE_DECIMALS),
    )


def _billed(gpu: GpuThroughput, prices: DerivedPrices) -> Fraction:
    """What the page that the prices were derived from costs at them, in units of the currency."""
    prompt = Fraction(gpu.prompt_tokens_per_page) * prices.prompt_micro
    completion = Fraction(gpu.completion_tokens_per_page) * prices.completion_micro
    return (prompt + completion) / MILLION / 10**TOKEN_PRICE_DECIMALS


def _price(micro: int) -> str:
    return amount_text(micro, TOKEN_PRICE_DECIMALS)


def _rounded(amount: Fraction) -> str:
    """To nine decimals, for people."""
    return amount_text(round(amount * 10**9), 9)
