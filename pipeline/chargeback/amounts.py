"""Amounts of money as integers: parsed from decimal text, rounded once, written back. No floats anywhere."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from pipeline.chargeback.echoes import echoed

MILLION: Final = 1_000_000
MONEY_DECIMALS: Final = 6
"""Of an amount in whole micro-units."""

EXACT_COST_DECIMALS: Final = 12
"""Of a cost before it is rounded: tokens times micro-units for a million."""

GREATEST_AMOUNT: Final = 9_999_999_999

TOKEN_PRICE_DECIMALS: Final = 6
"""Of a price for a million tokens, which is then a whole number of micro-units."""

CPU_PRICE_DECIMALS: Final = 12
"""Of a price for one page, so that a million pages cost a whole number of micro-units."""

GREATEST_TOKEN_PRICE: Final = 1_000_000_000
GREATEST_CPU_PRICE: Final = 1_000_000
"""For a million tokens and for a page. A call of less than 2**32 tokens each way, and a page, then cost less than 2**63
micro-units, which is what a database's integer holds."""

_AMOUNT = re.compile(r"([0-9]+)(?:\.([0-9]+))?")


def token_price_micro(value: object) -> int:
    """Micro-units for a million tokens, from text such as "0.45". Raises ValueError for anything else."""
    return _scaled(value, TOKEN_PRICE_DECIMALS, GREATEST_TOKEN_PRICE, "price of a million tokens")


def cpu_page_price_micro(value: object) -> int:
    """Micro-units for a million pages, from the text of a page's price. Raises ValueError for anything else."""
    return _scaled(value, CPU_PRICE_DECIMALS, GREATEST_CPU_PRICE, "price of a page")


def money_micro(value: object) -> int:
    """Micro-units, from text such as "200.00". Raises ValueError for anything else."""
    return _scaled(value, MONEY_DECIMALS, GREATEST_AMOUNT, "amount")


def money_text(micro: int, currency: str | None = None) -> str:
    """As a person reads it, with two decimals or as many as it takes: 1,234.50 USD."""
    whole, _, fraction = amount_text(abs(micro), MONEY_DECIMALS).partition(".")
    text = f"{'-' * (micro < 0)}{int(whole):,}.{fraction:0<2}"
    return text if currency is None else f"{text} {currency}"


def half_even(numerator: int, denominator: int) -> int:
    """The whole number nearest to the quotient; of two that are equally near, the even one. ``denominator`` > 0."""
    quotient, rest = divmod(numerator, denominator)
    is_up = 2 * rest > denominator or (2 * rest == denominator and quotient % 2 == 1)
    return quotient + is_up


def amount_text(scaled: int, decimals: int) -> str:
    """An integer of 10**-decimals units as a decimal number, without zeros at its end: 450000 at 6 is 0.45."""
    sign, digits = "-" * (scaled < 0), str(abs(scaled)).rjust(decimals + 1, "0")
    point = len(digits) - decimals
    whole, fraction = digits[:point], digits[point:].rstrip("0")
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def _scaled(value: object, decimals: int, greatest: int, what: str) -> int:
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        raise ValueError(f'write the amount in quotes: "{value}"')  # noqa: TRY004 — as pydantic wants it
    match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{echoed(value)} is no amount; write digits with a point, such as '0.45'")
    whole, fraction = match[1].lstrip("0"), (match[2] or "").rstrip("0")
    if len(fraction) > decimals:
        raise ValueError(f"{echoed(value)} has more than {decimals} decimals; round it")
    is_above = len(whole) > len(str(greatest))  # and may be too long for Python to make a number of
    scaled = greatest if is_above else int((whole or "0") + fraction.ljust(decimals, "0"))
    if is_above or scaled > greatest * 10**decimals:
        raise ValueError(f"{echoed(value)} is too much; the greatest {what} is {greatest:,}")
    return scaled
