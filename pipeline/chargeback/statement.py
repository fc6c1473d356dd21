"""Statements: what the ledger's entries come to, line by line. Importing this is cheap."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields

from pipeline.chargeback.statement_lines import StatementBy


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSum:
    """Entries of the ledger that are alike, summed. Of ``day`` to ``reason`` those are None by which the entries were
    not told apart; ``model_id`` is None for all but calls to the VLM. Costs are None where no entry has one, and
    ``priced_entries`` have a cost. ``avoided_unpriced_entries`` avoided tokens that have no price.
    ``billed_predicted_tokens`` are the prompt tokens predicted for calls that were billed any.
    """

    day: str | None
    team: str | None
    cost_centre: str | None
    document_id: str | None
    reason: str | None
    currency: str
    model_id: str | None
    is_reversal: bool
    is_forced: bool
    is_wasted: bool
    usage_is_estimated: bool
    entries: int
    priced_entries: int
    avoided_unpriced_entries: int
    pages: int
    vlm_pages: int
    cached_pages: int
    cpu_pages: int
    cpu_s: float
    billed_predicted_tokens: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    avoided_tokens: int
    cost_micro: int | None
    avoided_micro: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What entries come to, reversals taken off. Amounts are micro-units of one currency, of the entries that have a
    price, None where there are none; the ``known_…`` ones are None where only what cost nothing has one.

    ``predicted_prompt_tokens`` and ``billed_prompt_tokens`` are of the calls for which the server said what it billed.
    ``wasted_…`` is what attempts took that left nothing in a page's text.
    """

    pages: int
    vlm_pages: int
    cached_pages: int
    cpu_attempts: int
    vlm_calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cpu_s: float
    cost_micro: int | None
    unpriced_entries: int
    avoided_tokens: int
    avoided_micro: int | None
    avoided_unpriced_entries: int
    wasted_attempts: int
    wasted_tokens: int
    wasted_micro: int | None
    predicted_prompt_tokens: int
    billed_prompt_tokens: int

    @property
    def known_cost_micro(self) -> int | None:
        return _known(self.cost_micro, self.unpriced_entries)

    @property
    def known_avoided_micro(self) -> int | None:
        return _known(self.avoided_micro, self.avoided_unpriced_entries)

    @property
    def known_wasted_micro(self) -> int | None:
        return self.wasted_micro if self.wasted_attempts else 0

    @property
    def prediction_error(self) -> float | None:
        """How far the bill was off, as a share of what was predicted; None where nothing was."""
        predicted = self.predicted_prompt_tokens
        return (self.billed_prompt_tokens - predicted) / predicted if predicted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLine:
    """``key`` is the cost centre, model, …; None for entries that have none. Calls that triage did not ask for, because
    every page was sent, are a line of their own (``is_forced_vlm``)."""

    key: str | None
    currency: str
    is_forced_vlm: bool
    bill: Bill


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencyTotal:
    """Currencies are never added up. ``forced`` is the part of ``bill`` that forced calls are, None where none are."""

    currency: str
    bill: Bill
    forced: Bill | None

    @property
    def forced_share(self) -> float | None:
        """Of the cost; None where there is no cost, or no forced call."""
        if self.forced is None or not self.bill.cost_micro or self.forced.cost_micro is None:
            return None
        return self.forced.cost_micro / self.bill.cost_micro


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCalls:
    """Calls to the VLM under way, or left behind by a process that is gone: they are booked when they are closed.
    ``reserved_tokens`` is the most that they can take, as far as it is known."""

    calls: int
    reserved_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Entries from ``first_day`` up to, not including, ``end_day`` (UTC, ``2026-11-30``). ``unpriced`` says which
    models' entries have no cost, and how many; None is what the CPU did."""

    by: StatementBy
    first_day: str
    end_day: str
    lines: tuple[StatementLine, ...]
    totals: tuple[CurrencyTotal, ...]
    unpriced: Mapping[str | None, int]
    open_calls: OpenCalls


def statement_of(
    sums: Iterable[LedgerSum], *, by: StatementBy, first_day: str, end_day: str, open_calls: OpenCalls
) -> Statement:
    """Lines are in the order of their keys; documents have the dearest first."""
    grouped: defaultdict[tuple[str | None, str, bool], list[Bill]] = defaultdict(list)
    unpriced: Counter[str | None] = Counter()
    for one in sums:
        bill = _bill(one)
        grouped[_key(one, by), one.currency, _is_forced_vlm(one)].append(bill)
        unpriced[one.model_id] += bill.unpriced_entries
    lines = [
        StatementLine(key=key, currency=currency, is_forced_vlm=is_forced, bill=_added(bills))
        for (key, currency, is_forced), bills in grouped.items()
    ]
    return Statement(
        by=by,
        first_day=first_day,
        end_day=end_day,
        lines=tuple(sorted(lines, key=_dearest_first if by is StatementBy.DOCUMENT else _by_key)),
        totals=_totals(lines),
        unpriced={model: entries for model, entries in sorted_names(unpriced) if entries},
        open_calls=open_calls,
    )


def sorted_names(counts: Mapping[str | None, int]) -> list[tuple[str | None, int]]:
    """By name; None comes last."""
    return sorted(counts.items(), key=lambda item: (item[0] is None, item[0] or ""))


def _key(one: LedgerSum, by: StatementBy) -> str | None:
    match by:
        case StatementBy.COST_CENTRE:
            return one.cost_centre
        case StatementBy.PROJECT:
            return one.cost_centre if "/" in (one.cost_centre or "") else None
        case StatementBy.TEAM:
            return one.team
        case StatementBy.DOCUMENT:
            return one.document_id
        case StatementBy.MODEL:
            return one.model_id
        case StatementBy.REASON:
            return one.reason
        case StatementBy.DAY:
            return one.day


def _is_forced_vlm(one: LedgerSum) -> bool:
    """What the CPU did for a page that was sent on by force, it does for every page."""
    return one.is_forced and one.model_id is not None


def _bill(one: LedgerSum) -> Bill:
    sign = -1 if one.is_reversal else 1
    is_call = one.model_id is not None
    is_billed = is_call and not one.usage_is_estimated
    return Bill(
        pages=one.pages,
        vlm_pages=one.vlm_pages,
        cached_pages=one.cached_pages,
        cpu_attempts=one.cpu_pages,
        vlm_calls=sign * one.entries * is_call,
        prompt_tokens=one.prompt_tokens,
        cached_tokens=one.cached_tokens,
        completion_tokens=one.completion_tokens,
        reasoning_tokens=one.reasoning_tokens,
        cpu_s=one.cpu_s,
        cost_micro=one.cost_micro,
        unpriced_entries=sign * (one.entries - one.priced_entries),
        avoided_tokens=one.avoided_tokens,
        avoided_micro=one.avoided_micro,
        avoided_unpriced_entries=sign * one.avoided_unpriced_entries,
        wasted_attempts=sign * one.entries * one.is_wasted,
        wasted_tokens=(one.prompt_tokens + one.completion_tokens) * one.is_wasted,
        wasted_micro=one.cost_micro if one.is_wasted else None,
        predicted_prompt_tokens=one.billed_predicted_tokens * is_billed,
        billed_prompt_tokens=one.prompt_tokens * is_billed,
    )


def _added(bills: Collection[Bill]) -> Bill:
    """At least one."""
    sums = {part.name: _sum(getattr(bill, part.name) for bill in bills) for part in fields(Bill)}
    return Bill(**sums)  # type: ignore[arg-type]


def _known(micro: int | None, unpriced_entries: int) -> int | None:
    return None if unpriced_entries and not micro else micro


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _totals(lines: Iterable[StatementLine]) -> tuple[CurrencyTotal, ...]:
    in_currency: defaultdict[str, list[StatementLine]] = defaultdict(list)
    for line in lines:
        in_currency[line.currency].append(line)
    return tuple(_total(currency, in_currency[currency]) for currency in sorted(in_currency))


def _total(currency: str, lines: Collection[StatementLine]) -> CurrencyTotal:
    forced = [line.bill for line in lines if line.is_forced_vlm]
    return CurrencyTotal(
        currency=currency,
        bill=_added([line.bill for line in lines]),
        forced=_added(forced) if forced else None,
    )


def _by_key(line: StatementLine) -> tuple[object, ...]:
    return (line.key is None, line.key or "", line.currency, line.is_forced_vlm)


def _dearest_first(line: StatementLine) -> tuple[object, ...]:
    return (line.currency, -(line.bill.cost_micro or 0), *_by_key(line))
