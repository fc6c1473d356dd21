"""Rows of the FOCUS export; ``tests/integration/test_focus_export.py`` has them judged."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from decimal import Decimal

import pytest

from pipeline.chargeback.charges import Quantities
from pipeline.chargeback.focus import COLUMNS, NUMBERS, ChargeSum, csv_line, focus_rows, header_line
from tests.fakes.ledger import DOLLARS, QWEN

CALLS = ChargeSum(
    day="2026-12-31",
    reversed_day=None,
    team="retail",
    cost_centre="retail/shop",
    model_id=QWEN,
    is_forced_vlm=False,
    entries=2,
    quantities=Quantities(
        cpu_pages=0, cached_pages=0, prompt_tokens=4_660, cached_tokens=180, completion_tokens=820
    ),
    prices=DOLLARS,
    cost_micro=986,
)
PAGES = replace(
    CALLS,
    model_id=None,
    quantities=Quantities(cpu_pages=3, cached_pages=0, prompt_tokens=0, cached_tokens=0, completion_tokens=0),
    cost_micro=84,
)


def test_tokens_are_priced_by_the_million_and_pages_one_by_one() -> None:
    prompt, cached, completion = focus_rows(CALLS)
    assert (prompt["PricingQuantity"], prompt["PricingUnit"]) == ("0.00448", "1000000 Tokens")
    assert (prompt["ConsumedQuantity"], prompt["ConsumedUnit"]) == ("4480.0", "Tokens")
    assert (prompt["ListUnitPrice"], cached["ListUnitPrice"]) == ("0.125718", "0.062859")
    assert completion["x_ChargeKind"] == "completion_tokens"
    [pages] = focus_rows(PAGES)
    assert (pages["PricingQuantity"], pages["ListUnitPrice"]) == ("3.0", "0.000027777778")
    assert (pages["ListCost"], pages["BilledCost"]) == ("0.000083333334", "0.000084")


@pytest.mark.parametrize("charges", [CALLS, PAGES])
def test_quantity_times_price_is_the_list_cost_and_billed_costs_add_up(charges: ChargeSum) -> None:
    rows = list(focus_rows(charges))
    for row in rows:
        assert set(row) == set(COLUMNS)
        product = Decimal(row["PricingQuantity"] or "") * Decimal(row["ListUnitPrice"] or "")
        assert product == Decimal(row["ListCost"] or "") == Decimal(row["ContractedCost"] or "")
        assert row["EffectiveCost"] == row["BilledCost"]
    assert sum(Decimal(row["BilledCost"] or "") for row in rows) * 10**6 == charges.cost_micro


def test_a_team_is_the_billing_account_and_its_project_the_sub_account() -> None:
    row = next(focus_rows(CALLS))
    assert (row["BillingAccountId"], row["SubAccountId"]) == ("retail", "retail/shop")
    assert row["SubAccountName"] == "shop"
    alone = next(focus_rows(replace(CALLS, cost_centre="retail")))
    assert (alone["SubAccountId"], alone["SubAccountName"]) == (None, None)


def test_periods_are_the_month_and_the_day() -> None:
    row = next(focus_rows(CALLS))
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (
        "2026-12-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    )
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (
        "2026-12-31T00:00:00Z",
        "2027-01-01T00:00:00Z",
    )


def test_only_what_takes_back_an_earlier_month_is_a_correction() -> None:
    same = next(focus_rows(replace(CALLS, reversed_day="2026-12-05")))
    earlier = next(focus_rows(replace(CALLS, reversed_day="2026-11-30")))
    assert (same["ChargeClass"], earlier["ChargeClass"]) == (None, "Correction")
    assert earlier["BillingPeriodStart"] == "2026-12-01T00:00:00Z"
    assert earlier["ChargePeriodStart"] == "2026-11-30T00:00:00Z"
    assert "taken back" in (earlier["ChargeDescription"] or "")


def test_what_has_no_price_or_used_nothing_is_in_no_row() -> None:
    assert list(focus_rows(replace(CALLS, cost_micro=None))) == []
    nothing = Quantities(cpu_pages=0, cached_pages=0, prompt_tokens=0, cached_tokens=0, completion_tokens=0)
    assert list(focus_rows(replace(CALLS, quantities=nothing, cost_micro=0))) == []


def test_text_is_quoted_so_that_a_number_stays_a_name_and_a_formula_is_not_computed() -> None:
    charges = replace(CALLS, team="4711", cost_centre='4711/=HYPERLINK("x"),1')
    line = csv_line(next(focus_rows(charges)))
    assert '"4711"' in line
    [cells] = csv.reader(io.StringIO(line))
    told = dict(zip(COLUMNS, cells, strict=True))
    assert told["SubAccountName"] == '\'=HYPERLINK("x"),1'
    assert told["SubAccountId"] == '4711/=HYPERLINK("x"),1'
    assert told["ChargeClass"] == ""


def test_numbers_have_a_point_and_no_quotes() -> None:
    line = csv_line(next(focus_rows(PAGES)))
    raw = dict(zip(COLUMNS, line.strip().split(","), strict=True))
    assert all("." in raw[name] and '"' not in raw[name] for name in NUMBERS)
    assert header_line().strip().split(",") == list(COLUMNS)
    assert [name for name in COLUMNS if name.startswith("x_")] == list(COLUMNS[-5:])
