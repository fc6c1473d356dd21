"""The price book: which price is in force, what usage costs to the micro-unit, and what is refused."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import PriceBookInvalid
from models.transcription import TokenUsage
from pipeline.chargeback.amounts import (
    GREATEST_CPU_PRICE,
    GREATEST_TOKEN_PRICE,
    amount_text,
    cpu_page_price_micro,
    half_even,
    token_price_micro,
)
from pipeline.chargeback.price_book import (
    PriceBook,
    UnitPrices,
    cost_of,
    load_price_book,
    parse_price_book,
    price_at,
)
from pipeline.chargeback.price_derivation import GpuThroughput, derive_prices
from pipeline.planning.model_profiles import load_profile, profile_names

BOOK = """\
schema_version = 1
name = "ours"
currency = "EUR"

[[entries]]
effective_from = 2026-07-01
per_cpu_page = "0.00003"

[entries.models.big]
per_million_prompt_tokens = "2"
per_million_cached_tokens = "0.5"
per_million_completion_tokens = "8.000001"

[entries.models."*"]
per_million_prompt_tokens = "0.45"
per_million_completion_tokens = "1.80"

[[entries]]
effective_from = 2026-01-01

[entries.models.big]
per_million_prompt_tokens = "3"
per_million_completion_tokens = "9"
"""
JULY = datetime(2026, 7, 1, tzinfo=UTC)
MICRO_PRICES = st.integers(0, GREATEST_TOKEN_PRICE * 10**6)
COUNTS = st.integers(0, 2**32 - 1)
FEW_COUNTS = st.integers(0, 20_000)


def book(text: str = BOOK) -> PriceBook:
    return parse_price_book(text, "ours.toml")


def unit_prices(
    prompt: int | None = 0, cached: int | None = 0, completion: int | None = 0, cpu_page: int | None = 0
) -> UnitPrices:
    return UnitPrices(
        currency="EUR",
        book_version="ours-0",
        prompt_micro_per_million=prompt,
        cached_micro_per_million=cached,
        completion_micro_per_million=completion,
        cpu_page_micro_per_million=cpu_page,
    )


@st.composite
def priced(draw: st.DrawFn) -> UnitPrices:
    """Any prices that a book can hold: a cached token costs no more than another."""
    prompt = draw(MICRO_PRICES)
    cached = draw(st.integers(0, prompt))
    cpu_page = draw(st.integers(0, GREATEST_CPU_PRICE * 10**12))
    return unit_prices(prompt, cached, draw(MICRO_PRICES), cpu_page)


@st.composite
def used(draw: st.DrawFn, counts: st.SearchStrategy[int] = COUNTS) -> TokenUsage:
    prompt, completion = draw(counts), draw(counts)
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=draw(st.none() | st.integers(0, prompt)),
        reasoning_tokens=draw(st.none() | st.integers(0, completion)),
    )


def paid(prices: UnitPrices, usage: TokenUsage | None = None, *, cpu_pages: int = 0) -> int:
    cost = cost_of(prices, usage, cpu_pages=cpu_pages)
    assert cost is not None
    return cost


def exact(prices: UnitPrices, usage: TokenUsage, cpu_pages: int) -> Fraction:
    """The same, a fraction at every step."""
    cached = usage.cached_tokens or 0
    return (
        (usage.prompt_tokens - cached) * Fraction(prices.prompt_micro_per_million or 0, 10**6)
        + cached * Fraction(prices.cached_micro_per_million or 0, 10**6)
        + usage.completion_tokens * Fraction(prices.completion_micro_per_million or 0, 10**6)
        + cpu_pages * Fraction(prices.cpu_page_micro_per_million or 0, 10**6)
    )


# What usage costs.


@given(priced(), used(), st.integers(0, 1))
def test_a_cost_is_the_exact_amount_rounded_once_half_to_even(
    prices: UnitPrices, usage: TokenUsage, cpu_pages: int
) -> None:
    cost = paid(prices, usage, cpu_pages=cpu_pages)
    assert cost == round(exact(prices, usage, cpu_pages))
    assert type(cost) is int


@given(priced(), used(), st.integers(0, 1))
def test_no_cost_is_too_great_for_a_database_s_integer(
    prices: UnitPrices, usage: TokenUsage, cpu_pages: int
) -> None:
    assert 0 <= paid(prices, usage, cpu_pages=cpu_pages) < 2**63


def test_the_dearest_call_of_all_fits_too() -> None:
    greatest = GREATEST_TOKEN_PRICE * 10**6
    prices = unit_prices(greatest, greatest, greatest, GREATEST_CPU_PRICE * 10**12)
    usage = TokenUsage(prompt_tokens=2**32 - 1, completion_tokens=2**32 - 1)
    assert 2**62 < paid(prices, usage, cpu_pages=1) < 2**63


@given(priced(), st.lists(used(FEW_COUNTS), min_size=1, max_size=8))
def test_rows_add_up_to_their_sum_within_half_a_micro_unit_each(
    prices: UnitPrices, usages: list[TokenUsage]
) -> None:
    together = TokenUsage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens or 0 for usage in usages),
    )
    difference = sum(paid(prices, usage) for usage in usages) - exact(prices, together, 0)
    assert abs(difference) <= Fraction(len(usages), 2)


@given(priced(), used(), st.integers(0, 5_000), st.integers(0, 5_000))
def test_more_tokens_never_cost_less(
    prices: UnitPrices, usage: TokenUsage, more_prompt: int, more_completion: int
) -> None:
    more = TokenUsage(
        prompt_tokens=usage.prompt_tokens + more_prompt,
        completion_tokens=usage.completion_tokens + more_completion,
        cached_tokens=usage.cached_tokens,
    )
    assert paid(prices, more) >= paid(prices, usage)


@given(priced(), used())
def test_a_call_without_cached_tokens_is_the_dearest(prices: UnitPrices, usage: TokenUsage) -> None:
    """So what is reserved before a call, with none cached, is enough for what is settled after it."""
    none_cached = TokenUsage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)
    assert paid(prices, none_cached) >= paid(prices, usage)


def test_cached_tokens_are_part_of_the_prompt_and_reasoning_is_part_of_the_completion() -> None:
    prices = unit_prices(prompt=2_000_000, cached=500_000, completion=8_000_000)
    usage = TokenUsage(prompt_tokens=1_000, cached_tokens=640, completion_tokens=50, reasoning_tokens=40)
    assert cost_of(prices, usage) == 360 * 2 + 640 // 2 + 50 * 8


@pytest.mark.parametrize(
    ("half_units", "cost"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 2), (7, 4), (9, 4)]
)
def test_halves_go_to_the_even_side(half_units: int, cost: int) -> None:
    usage = TokenUsage(prompt_tokens=half_units, completion_tokens=0)
    assert cost_of(unit_prices(prompt=500_000), usage) == cost


def test_the_parts_of_a_call_are_not_rounded_one_by_one() -> None:
    """0.4 + 0.4 + 0.4 micro-units are 1.2, not 0."""
    usage = TokenUsage(prompt_tokens=2, cached_tokens=1, completion_tokens=1)
    assert cost_of(unit_prices(prompt=400_000, cached=400_000, completion=400_000), usage) == 1


@given(st.integers(), st.integers(min_value=1))
def test_half_even_is_what_fractions_do(numerator: int, denominator: int) -> None:
    assert half_even(numerator, denominator) == round(Fraction(numerator, denominator))
    assert half_even(-numerator, denominator) == -half_even(numerator, denominator)


# What has no price.


@given(used())
def test_a_cost_is_unknown_only_where_something_unpriced_was_used(usage: TokenUsage) -> None:
    cached = usage.cached_tokens or 0
    uncached = usage.prompt_tokens - cached
    assert (cost_of(unit_prices(prompt=None), usage) is None) == (uncached > 0)
    assert (cost_of(unit_prices(cached=None), usage) is None) == (cached > 0)
    assert (cost_of(unit_prices(completion=None), usage) is None) == (usage.completion_tokens > 0)
    assert cost_of(unit_prices(cpu_page=None), usage) == 0
    assert cost_of(unit_prices(cpu_page=None), usage, cpu_pages=1) is None


def test_a_model_that_the_book_does_not_know_is_unpriced_and_raises_nothing() -> None:
    prices = price_at(book(), "unheard-of", datetime(2026, 3, 1, tzinfo=UTC))
    assert prices == UnitPrices(currency="EUR", book_version=book().version)
    assert cost_of(prices, TokenUsage(prompt_tokens=5, completion_tokens=0)) is None
    assert cost_of(prices, TokenUsage(prompt_tokens=0, completion_tokens=0)) == 0


def test_before_the_first_entry_everything_is_unpriced() -> None:
    prices = price_at(book(), "big", datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert prices == UnitPrices(currency="EUR", book_version=book().version)


def test_a_page_that_only_the_cpu_reads_has_no_model() -> None:
    prices = price_at(book(), None, JULY)
    assert (prices.prompt_micro_per_million, prices.cpu_page_micro_per_million) == (None, 30_000_000)
    assert cost_of(prices, cpu_pages=1) == 30


# Which price is in force.


def test_a_model_of_its_own_name_goes_before_any_other() -> None:
    big, other = price_at(book(), "big", JULY), price_at(book(), "small", JULY)
    assert (big.prompt_micro_per_million, big.cached_micro_per_million) == (2_000_000, 500_000)
    assert big.completion_micro_per_million == 8_000_001
    assert (other.prompt_micro_per_million, other.completion_micro_per_million) == (450_000, 1_800_000)


def test_cached_tokens_without_a_price_of_their_own_cost_what_the_prompt_does() -> None:
    prices = price_at(book(), "small", JULY)
    assert prices.cached_micro_per_million == prices.prompt_micro_per_million


@given(
    st.sampled_from([date(2026, 1, 1), date(2026, 7, 1)]), st.integers(-1_000, 1_000), st.integers(-14, 14)
)
def test_a_day_begins_at_midnight_utc_wherever_the_clock_hangs(
    day: date, minutes: int, offset_h: int
) -> None:
    """Within 17 hours of a change of prices."""
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=minutes)
    prices_micro = {1: (None, 3_000_000), 7: (3_000_000, 2_000_000)}[day.month]
    prices = price_at(book(), "big", moment.astimezone(timezone(timedelta(hours=offset_h))))
    assert prices.prompt_micro_per_million == prices_micro[minutes >= 0]


@given(st.lists(st.dates(), min_size=1, max_size=6, unique=True), st.dates())
def test_the_latest_entry_that_has_begun_is_in_force(days: list[date], today: date) -> None:
    """In whichever order they are written; and those after it are to come, the next first."""
    entries = "".join(f"[[entries]]\neffective_from = {day}\n" for day in days)
    drawn = book(f'schema_version = 1\nname = "drawn"\ncurrency = "EUR"\n{entries}')
    in_force = drawn.entry_on(today)
    begun = [day for day in days if day <= today]
    assert (in_force and in_force.effective_from) == (max(begun) if begun else None)
    assert [entry.effective_from for entry in drawn.entries_after(today)] == sorted(set(days) - set(begun))


def test_a_moment_without_a_time_zone_is_no_moment() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        price_at(book(), "big", datetime(2026, 7, 1))


# The book's identity.


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('currency = "EUR"', 'currency = "EUR"  # as agreed'),
        ('"2"', '"2.00"'),
        ('"0.45"\n', '"0.45"\nper_million_cached_tokens = "0.45"\n'),
        (
            BOOK,
            BOOK.split("[[entries]]")[0]
            + "".join(f"[[entries]]{e}\n" for e in BOOK.split("[[entries]]")[:0:-1]),
        ),
    ],
    ids=["comment", "zeros", "the default written out", "order"],
)
def test_what_decides_nothing_keeps_the_version(before: str, after: str) -> None:
    assert before in BOOK
    assert book(BOOK.replace(before, after)).version == book().version


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('name = "ours"', 'name = "theirs"'),
        ('"EUR"', '"USD"'),
        ("2026-07-01", "2026-07-02"),
        ('per_cpu_page = "0.00003"\n', ""),
        ('"0.00003"', '"0.000030000001"'),
        ("models.big", "models.bigger"),
        ('"2"', '"2.000001"'),
        ('"0.5"', '"0.6"'),
        ('"1.80"', '"1.81"'),
    ],
)
def test_what_decides_a_price_changes_the_version(before: str, after: str) -> None:
    assert before in BOOK
    changed = book(BOOK.replace(before, after))
    assert changed.version != book().version
    assert re.fullmatch(rf"{changed.name}-[0-9a-f]{{12}}", changed.version)


# What is refused.


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            '"0.45"',
            "0.45",
            'entries.1.models.*.per_million_prompt_tokens: write the amount in quotes: "0.45"',
        ),
        ('"2"', "2", 'entries.1.models.big.per_million_prompt_tokens: write the amount in quotes: "2"'),
        ('"0.00003"', "3e-5", 'entries.1.per_cpu_page: write the amount in quotes: "0.00003"'),
        ('"0.45"', "nan", "per_million_prompt_tokens"),
        ('"0.45"', "true", "True is no amount"),
        ('"0.45"', '"-0.45"', "'-0.45' is no amount"),
        ('"0.45"', '"4.5e-1"', "'4.5e-1' is no amount"),
        ('"0.45"', '"0,45"', "'0,45' is no amount"),
        ('"0.45"', '".45"', "'.45' is no amount"),
        ('"0.45"', '"٣"', "is no amount"),
        ('"0.45"', '""', "'' is no amount"),
        ('"0.45"', '"0.4500001"', "more than 6 decimals"),
        ('"0.00003"', '"0.0000300000001"', "'0.0000300000001' has more than 12 decimals"),
        ('"0.45"', '"1000000000.01"', "too much; the greatest price of a million tokens is 1,000,000,000"),
        ('"0.00003"', '"1000000.1"', "too much; the greatest price of a page is 1,000,000"),
        ('"0.45"', '"99999999999999999"', "the greatest price of a million tokens is 1,000,000,000"),
        ('"0.45"', f'"{5_000 * "9"}"', f"'{78 * '9'}… is too much"),
        ('"0.5"', '"2.1"', "per_million_cached_tokens is above per_million_prompt_tokens"),
        (
            "per_cpu_page",
            "per_cpu_pages",
            "entries.1.per_cpu_pages: no such key (did you mean per_cpu_page?)",
        ),
        ('per_million_completion_tokens = "1.80"\n', "", "per_million_completion_tokens: missing"),
        (
            "2026-01-01",
            '"2026-01-01"',
            "entries.2.effective_from: 2026-01-01 is no day; write one without quotes",
        ),
        (
            "2026-01-01",
            "2026-01-01T00:00:00Z",
            "entries.2.effective_from: 2026-01-01 00:00:00+00:00 is no day",
        ),
        ("2026-01-01", "2026-07-01", "two entries are effective_from 2026-07-01"),
        ("2026-01-01", "2026-02-30", "no TOML"),
        ('"EUR"', '"eur"', "currency: 'eur' is no currency of ISO 4217"),
        ('"EUR"', '"UDS"', "currency: 'UDS' is no currency of ISO 4217"),
        ('"ours"', '"our prices"', "name"),
        ("schema_version = 1", "schema_version = 2", "schema_version"),
        ("models.big", 'models." big"', "' big' is no model"),
        ("models.big", 'models."a\\u0007"', "is no model"),
        ("schema_version = 1", "schema_version = ", "no TOML"),
        ("schema_version = 1", "schema_version = " + "1" * 5_000, "no TOML"),
        (BOOK, 'schema_version = 1\nname = "ours"\ncurrency = "EUR"\nentries = []', "write at least one"),
        (BOOK, 'schema_version = 1\nname = "ours"\ncurrency = "EUR"\nentries = 3', "entries"),
    ],
)
def test_a_fault_names_file_and_key(before: str, after: str, told: str) -> None:
    assert before in BOOK
    with pytest.raises(PriceBookInvalid) as caught:
        book(BOOK.replace(before, after))
    assert told in str(caught.value)
    assert str(caught.value).startswith("ours.toml: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    for name, told in (("gone.toml", "No such file"), ("latin.toml", "no text in UTF-8"), ("", "directory")):
        with pytest.raises(PriceBookInvalid, match=told) as caught:
            load_price_book(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


def test_a_file_is_what_its_text_is(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(BOOK, encoding="utf-8")
    assert load_price_book(tmp_path / "ours.toml") == book()


# Amounts.


@given(st.decimals(0, GREATEST_TOKEN_PRICE, places=6))
def test_a_token_s_price_is_parsed_without_loss(amount: Decimal) -> None:
    micro = token_price_micro(f"{amount:f}")
    assert micro == Fraction(amount) * 10**6
    assert token_price_micro(amount_text(micro, 6)) == micro


@given(st.integers(0, GREATEST_CPU_PRICE * 10**12))
def test_a_page_s_price_is_written_without_loss(micro: int) -> None:
    text = amount_text(micro, 12)
    assert cpu_page_price_micro(text) == micro
    assert Fraction(text) == Fraction(micro, 10**12)
    assert not re.search(r"\..*0$|\.$", text)


@pytest.mark.parametrize(
    ("scaled", "text"), [(0, "0"), (450_000, "0.45"), (1, "0.000001"), (-1_500_000, "-1.5"), (3_000_000, "3")]
)
def test_amounts_as_text(scaled: int, text: str) -> None:
    assert amount_text(scaled, 6) == text


# The book that is shipped.


def test_every_shipped_profile_has_a_price_of_its_own_and_no_other_model_has() -> None:
    shipped = load_price_book()
    assert [set(entry.models) for entry in shipped.entries] == [set(profile_names())]
    prices = price_at(shipped, profile_names()[0], JULY)
    assert (prices.currency, cost_of(prices, cpu_pages=1)) == ("USD", 28)
    assert price_at(shipped, "unheard-of", JULY).prompt_micro_per_million is None


def test_the_shipped_prices_are_what_their_comment_derives() -> None:
    text = resources.files("pipeline").joinpath("chargeback/default_prices.toml").read_text(encoding="utf-8")
    rows = re.findall(r"^#   ([\w.-]+) +(\d+\.\d+) +(\d+)$", text, re.MULTILINE)
    assert {name for name, _, _ in rows} == set(profile_names())
    assert "EXAMPLE" in text.splitlines()[0]
    entry = load_price_book().entries[0]
    base_parameters = load_profile(rows[0][0]).parameters
    for name, billions, pages in rows:
        parameters = load_profile(name).parameters
        assert Fraction(billions) * 10**9 == parameters
        assert int(pages) == round(Fraction(6_000 * base_parameters, parameters))
        derived = derive_prices(
            GpuThroughput(
                hour_cost=Decimal("3.50"),
                pages_per_hour=Decimal(pages),
                prompt_tokens_per_page=Decimal(2_240),
                completion_tokens_per_page=Decimal(600),
                completion_weight=Decimal(4),
                cached_weight=Decimal(1),
            )
        )
        prices = entry.models[name]
        assert prices.prompt_micro == derived.prompt_micro
        assert prices.cached_micro == derived.cached_micro
        assert prices.completion_micro == derived.completion_micro
    assert entry.cpu_page_micro == round(Fraction("0.05") / 1_800 * 10**12)
