"""The ledger as FOCUS 1.2, the FinOps Open Cost and Usage Specification (focus.finops.org): a CSV file, a row for each
day, cost centre, model, price and kind of charge.

The team is the billing account and its project the sub account. List and contracted costs are quantity times unit
price, not rounded; billed and effective costs are what the ledger has, which rounds each call. What has no price is no
charge, and in no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from pipeline.chargeback.amounts import (
    CPU_PRICE_DECIMALS,
    EXACT_COST_DECIMALS,
    MONEY_DECIMALS,
    TOKEN_PRICE_DECIMALS,
    amount_text,
)
from pipeline.chargeback.charges import (
    KINDS_OF_PAGES,
    Charge,
    ChargeKind,
    Quantities,
    charges_of,
    shared_cost,
)
from pipeline.chargeback.months import month_after
from pipeline.chargeback.price_book import UnitPrices
from pipeline.spreadsheet_text import inert

PROVIDER: Final = "doctriage"

NUMBERS: Final = (
    "BilledCost",
    "ConsumedQuantity",
    "ContractedCost",
    "EffectiveCost",
    "ListCost",
    "ListUnitPrice",
    "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice",
    "PricingQuantity",
)

COLUMNS: Final = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "CommitmentDiscountStatus",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceId",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCurrency",
    "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "x_ChargeKind",
    "x_CostCentre",
    "x_IsForcedVlm",
    "x_ModelId",
    "x_PriceBookVersion",
)

METERS: Final[Mapping[ChargeKind, str]] = {
    ChargeKind.CPU_PAGES: "CPU Pages",
    ChargeKind.CACHED_PAGES: "Cached Pages",
    ChargeKind.PROMPT_TOKENS: "Prompt Tokens",
    ChargeKind.CACHED_PROMPT_TOKENS: "Cached Prompt Tokens",
    ChargeKind.COMPLETION_TOKENS: "Completion Tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeSum:
    """Entries of one day, cost centre, model and price, summed. ``reversed_day`` is the day of the entries that these
    take back, None where they take nothing back. ``cost_micro`` is None for entries without a price."""

    day: str
    reversed_day: str | None
    team: str
    cost_centre: str
    model_id: str | None
    is_forced_vlm: bool
    entries: int
    quantities: Quantities
    prices: UnitPrices
    cost_micro: int | None


FocusRow = Mapping[str, str | None]
"""A cell for each of ``COLUMNS``, as text; those of ``NUMBERS`` are decimal numbers."""


def focus_rows(charges: ChargeSum) -> Iterator[FocusRow]:
    """None for entries that used nothing, or have no price."""
    parts = charges_of(charges.quantities, charges.prices)
    if charges.cost_micro is None or not parts:
        return
    for part, billed_micro in zip(parts, shared_cost(parts, charges.cost_micro), strict=True):
        yield _row(charges, part, billed_micro)


def csv_line(cells: Mapping[str, str | None]) -> str:
    """Text is quoted, so that a cost centre called 4711 is no number; a cell without quotes is a number or null, which
    Python's own csv module cannot tell apart from empty text."""
    return ",".join(_cell(name, cells[name]) for name in COLUMNS) + "\r\n"


def header_line() -> str:
    return ",".join(COLUMNS) + "\r\n"


def _cell(column: str, value: str | None) -> str:
    if value is None or column in NUMBERS:
        return value or ""
    escaped = inert(value).replace('"', '""')
    return f'"{escaped}"'


def _row(charges: ChargeSum, charge: Charge, billed_micro: int) -> FocusRow:
    billed = _decimal(billed_micro, MONEY_DECIMALS)
    exact = _decimal(charge.exact_cost or 0, EXACT_COST_DECIMALS)
    project = charges.cost_centre.partition("/")[2] or None
    return {
        "BilledCost": billed,
        "BillingAccountId": charges.team,
        "BillingAccountName": charges.team,
        "BillingCurrency": charges.prices.currency,
        "ChargeCategory": "Usage",
        "ChargeClass": "Correction" if _corrects_an_earlier_month(charges) else None,
        "ChargeDescription": _description(charges, charge),
        "ChargeFrequency": "Usage-Based",
        "CommitmentDiscountStatus": None,
        "ContractedCost": exact,
        "EffectiveCost": billed,
        "InvoiceId": None,
        "InvoiceIssuerName": PROVIDER,
        "ListCost": exact,
        "PricingCurrency": charges.prices.currency,
        "PricingCurrencyEffectiveCost": billed,
        "ProviderName": PROVIDER,
        "PublisherName": PROVIDER,
        "SubAccountId": None if project is None else charges.cost_centre,
        "SubAccountName": project,
        "x_ChargeKind": charge.kind.value,
        "x_CostCentre": charges.cost_centre,
        "x_IsForcedVlm": str(charges.is_forced_vlm).lower(),
        "x_ModelId": charges.model_id,
        "x_PriceBookVersion": charges.prices.book_version,
        **_periods(charges),
        **_service(charge.kind),
        **_quantity(charge),
        **_sku(charges, charge),
    }


def _corrects_an_earlier_month(charges: ChargeSum) -> bool:
    return charges.reversed_day is not None and charges.reversed_day[:7] != charges.day[:7]


def _periods(charges: ChargeSum) -> FocusRow:
    """A reversal is billed in its own month, for the day that it takes back."""
    month = charges.day[:7]
    day = charges.reversed_day or charges.day
    return {
        "BillingPeriodStart": _midnight(f"{month}-01"),
        "BillingPeriodEnd": _midnight(f"{month_after(month)}-01"),
        "ChargePeriodStart": _midnight(day),
        "ChargePeriodEnd": _midnight((date.fromisoformat(day) + timedelta(days=1)).isoformat()),
    }


def _midnight(day: str) -> str:
    return f"{day}T00:00:00Z"


def _service(kind: ChargeKind) -> FocusRow:
    is_cpu = kind in KINDS_OF_PAGES
    return {
        "ServiceCategory": "AI and Machine Learning",
        "ServiceName": "doctriage CPU" if is_cpu else "doctriage VLM",
        "ServiceSubcategory": "Machine Learning" if is_cpu else "Generative AI",
    }


def _quantity(charge: Charge) -> FocusRow:
    """Prices of tokens are for a million, those of pages for one."""
    is_pages = charge.kind in KINDS_OF_PAGES
    decimals = CPU_PRICE_DECIMALS if is_pages else TOKEN_PRICE_DECIMALS
    unit_price = _decimal(charge.micro_per_million or 0, decimals)
    return {
        "ConsumedQuantity": _decimal(charge.quantity, 0),
        "ConsumedUnit": "Pages" if is_pages else "Tokens",
        "PricingQuantity": _decimal(charge.quantity, 0 if is_pages else 6),
        "PricingUnit": "Pages" if is_pages else "1000000 Tokens",
        "ListUnitPrice": unit_price,
        "PricingCurrencyContractedUnitPrice": unit_price,
        "PricingCurrencyListUnitPrice": unit_price,
    }


def _sku(charges: ChargeSum, charge: Charge) -> FocusRow:
    meter = METERS[charge.kind]
    sku = f"{charges.model_id or 'cpu'}/{charge.kind.value}"
    price = charge.micro_per_million
    return {
        "SkuId": sku,
        "SkuMeter": meter,
        "SkuPriceDetails": None,
        "SkuPriceId": f"{sku}/{charges.prices.book_version}/{price}",
    }


def _description(charges: ChargeSum, charge: Charge) -> str:
    of_model = "" if charges.model_id is None else f" of {charges.model_id}"
    forced = ", sent by force" if charges.is_forced_vlm else ""
    taken_back = "" if charges.reversed_day is None else ", taken back"
    return f"{METERS[charge.kind]}{of_model}: {abs(charge.quantity):,}{forced}{taken_back}"


def _decimal(scaled: int, decimals: int) -> str:
    """Always with a point: readers that guess types take a column of whole numbers for integers."""
    text = amount_text(scaled, decimals)
    return text if "." in text else f"{text}.0"
