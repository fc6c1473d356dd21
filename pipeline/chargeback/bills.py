"""What a run cost, by the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionBill:
    """A submission's entries in one currency. ``unpriced_entries`` used what has no price; ``cost_micro`` is the sum
    of the others."""

    cost_centre: str
    currency: str
    prompt_tokens: int
    completion_tokens: int
    cost_micro: int
    unpriced_entries: int


def summed_bills(bills: Iterable[SubmissionBill]) -> tuple[SubmissionBill, ...]:
    """One for each cost centre and currency, in their order."""
    alike: defaultdict[tuple[str, str], list[SubmissionBill]] = defaultdict(list)
    for bill in bills:
        alike[bill.cost_centre, bill.currency].append(bill)
    return tuple(
        SubmissionBill(
            cost_centre=cost_centre,
            currency=currency,
            prompt_tokens=sum(bill.prompt_tokens for bill in some),
            completion_tokens=sum(bill.completion_tokens for bill in some),
            cost_micro=sum(bill.cost_micro for bill in some),
            unpriced_entries=sum(bill.unpriced_entries for bill in some),
        )
        for (cost_centre, currency), some in sorted(alike.items())
    )
