"""A quote beside the bill: what was expected, what was booked since, and the pages where the images differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from models.page import Route
from pipeline.chargeback.call_estimate import Estimate
from pipeline.chargeback.quote_pages import Way
from pipeline.chargeback.quote_sums import FAILED, ROUTE_COUNTS
from pipeline.chargeback.saved_quote import SavedEstimate, SavedPage, SavedQuote

PageKey = tuple[str, int]
"""document_id, page_number"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledEntry:
    """What a comparison needs of a ledger's entry. ``is_call`` and ``is_reversal`` tell its kind; a reversal's numbers
    are below 0."""

    document_id: str
    page_number: int | None
    is_call: bool
    is_reversal: bool
    is_wasted: bool
    route: str | None
    pages: int
    cpu_pages: int
    predicted_visual_tokens: int
    prompt_tokens: int
    completion_tokens: int
    currency: str
    cost_micro: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """``quoted`` is None, and so is ``billed``, where that was unpriced."""

    quoted: Estimate | None
    billed: int | None

    @property
    def difference(self) -> Decimal | None:
        """Of the bill, as a share of what was quoted; None where there is none to tell."""
        if self.quoted is None or self.billed is None or not self.quoted.about:
            return None
        return Decimal(self.billed - self.quoted.about) / self.quoted.about

    @property
    def is_within(self) -> bool | None:
        """Whether the bill lies within the range that was quoted."""
        if self.quoted is None or self.billed is None:
            return None
        return self.quoted.low <= self.billed <= self.quoted.high


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingPage:
    """A page whose first call took other visual tokens than were quoted. None is no call."""

    source: str
    page_number: int
    quoted_tokens: int | None
    billed_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``pages`` are by route, and with ``tokens`` and ``costs`` by the names of ``SavedTotals``. ``calls`` counts
    second calls too. ``waiting`` are pages that the quote would send and no call was made about, ``elsewhere`` entries
    in another currency than the quote's, ``unpriced`` those without a cost."""

    quote: SavedQuote
    entries: int
    calls: int
    pages: Mapping[str, Compared]
    tokens: Mapping[str, Compared]
    costs: Mapping[str, Compared]
    differing: tuple[DifferingPage, ...]
    waiting: tuple[DifferingPage, ...]
    elsewhere: int
    unpriced: int


TOKENS: Final = ("visual_tokens", "prompt_tokens", "completion_tokens")
COSTS: Final = ("cpu_micro", "vlm_micro", "total_micro")


def compare(quote: SavedQuote, entries: Iterable[BilledEntry]) -> Comparison:
    """``entries`` are those about the quote's documents since it was begun, in the order in which they were booked."""
    bill = _Bill(currency=quote.currency)
    for entry in entries:
        bill.add(entry)
    totals = quote.ways[Way.TRIAGED.value]
    differing = tuple(_differing(quote, bill))
    return Comparison(
        quote=quote,
        entries=bill.entries,
        calls=bill.calls,
        pages={
            **{name: _compared(quoted, bill.pages_on(name)) for name, quoted in _quoted_routes(quote)},
            "cpu_pages": _compared(totals.cpu_pages, bill.cpu_pages),
            "calls": _compared(totals.calls, len(bill.first_calls)),
        },
        tokens={name: _compared(getattr(totals, name), bill.tokens[name]) for name in TOKENS},
        costs={name: _compared(getattr(totals, name), bill.cost_micro(name)) for name in COSTS},
        differing=tuple(page for page in differing if page.billed_tokens is not None),
        waiting=tuple(page for page in differing if page.billed_tokens is None),
        elsewhere=bill.elsewhere,
        unpriced=sum(bill.unpriced.values()),
    )


@dataclass(slots=True)
class _Bill:
    """Sums of entries, and what became of each page."""

    currency: str
    entries: int = 0
    calls: int = 0
    cpu_pages: int = 0
    elsewhere: int = 0
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOKENS, 0))
    costs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COSTS, 0))
    unpriced: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COSTS[:2], 0))
    routes: dict[PageKey, str] = field(default_factory=dict)
    first_calls: dict[PageKey, int] = field(default_factory=dict)

    def add(self, entry: BilledEntry) -> None:
        self.entries += 1
        self.cpu_pages += entry.cpu_pages
        self.tokens["prompt_tokens"] += entry.prompt_tokens
        self.tokens["completion_tokens"] += entry.completion_tokens
        self._add_cost(entry)
        if entry.page_number is not None and not entry.is_reversal:
            self._add_page((entry.document_id, entry.page_number), entry)

    def _add_cost(self, entry: BilledEntry) -> None:
        name = "vlm_micro" if entry.is_call else "cpu_micro"
        if entry.cost_micro is None:
            self.unpriced[name] += -1 if entry.is_reversal else 1
        elif entry.currency == self.currency:
            self.costs[name] += entry.cost_micro
            self.costs["total_micro"] += entry.cost_micro
        else:
            self.elsewhere += 1

    def _add_page(self, key: PageKey, entry: BilledEntry) -> None:
        if entry.is_call:
            self.calls += 1
            if key not in self.first_calls:
                self.first_calls[key] = entry.predicted_visual_tokens
                self.tokens["visual_tokens"] += entry.predicted_visual_tokens
        if entry.route is not None:
            self.routes[key] = entry.route
        elif entry.pages:
            self.routes[key] = FAILED if entry.is_wasted else Route.OCR_DEGRADED.value

    def pages_on(self, route: str) -> int:
        return sum(one == route for one in self.routes.values())

    def cost_micro(self, name: str) -> int | None:
        """None where something in it has no price."""
        unpriced = sum(self.unpriced.values()) if name == "total_micro" else self.unpriced[name]
        return None if unpriced else self.costs[name]


def _compared(quoted: SavedEstimate | None, billed: int | None) -> Compared:
    if quoted is None:
        return Compared(quoted=None, billed=billed)
    return Compared(quoted=Estimate(low=quoted.low, about=quoted.about, high=quoted.high), billed=billed)


def _quoted_routes(quote: SavedQuote) -> Iterator[tuple[str, SavedEstimate]]:
    """Of the pages that were still to be paid for, where all are known."""
    pages = [page for document in quote.documents for page in document.pages]
    for name in ROUTE_COUNTS:
        estimate = quote.pages_by_route[name]
        if quote.sample is None:
            count = sum(_is_unpaid(page) and _route_name(page) == name for page in pages)
            estimate = SavedEstimate(low=count, about=count, high=count)
        yield name, estimate


def _is_unpaid(page: SavedPage) -> bool:
    return not page.was_read or page.visual_tokens is not None


def _route_name(page: SavedPage) -> str:
    return FAILED if page.route is None else page.route.value


def _differing(quote: SavedQuote, bill: _Bill) -> Iterator[DifferingPage]:
    for document in quote.documents:
        for page in document.pages:
            billed = bill.first_calls.get((document.document_id, page.page_number))
            if billed != page.visual_tokens:
                yield DifferingPage(
                    source=document.sources[0] if document.sources else document.document_id,
                    page_number=page.page_number,
                    quoted_tokens=page.visual_tokens,
                    billed_tokens=billed,
                )
