"""What a run cost, by the ledger."""

from __future__ import annotations

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
