"""A sample of pages, and what all pages come to by it.

Pages are drawn document by document, in proportion to the pages of each; documents too short for five drawn pages are
drawn from together with their neighbours. Chance is a hash of the document's bytes and the page's number, so the same
folder gives the same sample.

What the other pages come to is drawn two thousand times: each time every stratum is filled up with pages like those
that were read in it (a Bayesian bootstrap for finite populations, the Pólya posterior of Lo 1988 and Ghosh and Meeden
1997, weighted so that its variance is that of a random sample drawn without replacement). Half a page that goes to the
VLM and half a page that does not are added to what was seen, as Jeffreys' prior has it, so that a sample in which no
page goes does not promise that none will. The interval is the middle 95 % of the sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.page import Route
from pipeline.chargeback.amounts import half_even
from pipeline.chargeback.call_estimate import largest_call, mean_call
from pipeline.chargeback.quote import AmountsOf, QuotedDocument, SpreadOver
from pipeline.chargeback.quote_pages import QuotedPage
from pipeline.chargeback.quote_sums import Amounts, Spread, total
from pipeline.chargeback.sample_size import CONFIDENCE_PERCENT
from pipeline.planning.serving_plan import ServingPlan

DRAWS: Final = 2_000
SEED: Final = 20_26
LEAST_DRAWN_A_STRATUM: Final = 5
UNSEEN_WEIGHT: Final = 0.5
"""Of each of the two pages that are added to those that were seen, over all strata together."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Documents that are drawn from together. ``drawn`` holds document ids and page numbers."""

    document_ids: tuple[str, ...]
    page_count: int
    drawn: frozenset[tuple[str, int]]


def draw_sample(page_counts: Mapping[str, int], sample_pages: int) -> tuple[Stratum, ...]:
    """So many pages of the documents, whose pages are given by id, in the order in which neighbours resemble each
    other. ``sample_pages`` is at least 1, and fewer than there are."""
    groups = _groups(page_counts, sample_pages)
    counts = [sum(page_counts[document_id] for document_id in group) for group in groups]
    shares = _shares(counts, sample_pages)
    return tuple(
        Stratum(document_ids=group, page_count=count, drawn=frozenset(_ranked(group, page_counts)[:share]))
        for group, count, share in zip(groups, counts, shares, strict=True)
    )


def _groups(page_counts: Mapping[str, int], sample_pages: int) -> list[tuple[str, ...]]:
    """Documents of which at least five pages are drawn stand alone; the others are put together until they reach that,
    and what is left over goes to the last of them."""
    page_count = sum(page_counts.values())

    def is_enough(pages: int) -> bool:
        return pages * sample_pages >= LEAST_DRAWN_A_STRATUM * page_count

    groups: list[tuple[str, ...]] = []
    short: list[str] = []
    for document_id, pages in page_counts.items():
        if is_enough(pages):
            groups.append((document_id,))
            continue
        short.append(document_id)
        if is_enough(sum(page_counts[one] for one in short)):
            groups.append(tuple(short))
            short = []
    if short:
        groups.append((*groups.pop(), *short) if groups else tuple(short))
    return groups


def _shares(counts: Sequence[int], sample_pages: int) -> list[int]:
    """In proportion, by largest remainders. No share is larger than its count."""
    page_count = sum(counts)
    shares = [count * sample_pages // page_count for count in counts]
    remainders = [count * sample_pages % page_count for count in counts]
    by_remainder = sorted(range(len(counts)), key=lambda place: -remainders[place])
    for place in by_remainder[: sample_pages - sum(shares)]:
        shares[place] += 1
    return shares


def _ranked(document_ids: Sequence[str], page_counts: Mapping[str, int]) -> list[tuple[str, int]]:
    pages = (
        (document_id, number)
        for document_id in document_ids
        for number in range(1, page_counts[document_id] + 1)
    )
    return sorted(pages, key=lambda page: hashlib.sha256(f"quote/{page[0]}/{page[1]}".encode()).digest())


def over_sample(
    documents: Sequence[QuotedDocument], strata: Sequence[Stratum], unseen: tuple[QuotedPage, QuotedPage]
) -> SpreadOver:
    """Known pages count as they are; each of the others is like one that was drawn in its stratum, or like one of
    ``unseen``: a page that goes to the VLM, and one that does not."""
    known = {(one.document_id, page.page_number): page for one in documents for page in one.pages}

    def spread(amounts_of: AmountsOf) -> Spread:
        parts = list(_parts(strata, known, unseen, amounts_of))
        exact = np.array(total(map(amounts_of, known.values())).numbers, dtype=np.int64)
        sums = exact + _draws(parts)
        edges = (100 - CONFIDENCE_PERCENT) / 200
        low = np.quantile(sums, edges, axis=0, method="inverted_cdf")
        high = np.quantile(sums, 1 - edges, axis=0, method="inverted_cdf")
        about = exact + _expected(parts)
        return Spread(
            low=_amounts(np.minimum(low, about)),
            about=_amounts(about),
            high=_amounts(np.maximum(high, about)),
        )

    return spread


def unseen_pages(documents: Sequence[QuotedDocument], plan: ServingPlan) -> tuple[QuotedPage, QuotedPage]:
    """An ordinary page that goes to the VLM and one that does not: their calls are the mean of those that are known, or
    the largest that the plan has."""
    calls = [page.call for one in documents for page in one.pages if page.call is not None]
    call = mean_call(calls) if calls else largest_call(plan)
    goes = QuotedPage(page_number=0, route=Route.VLM, call=call, is_due=True, was_read=False)
    return goes, replace(goes, route=Route.OCR, is_due=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A stratum in numbers: ``seen`` has a row for each drawn page, then the two that are added; ``weights`` are how
    much each row is believed; ``unknown_pages`` are like them."""

    seen: Ints
    weights: NDArray[np.float64]
    unknown_pages: int

    @property
    def drawn_pages(self) -> int:
        return len(self.seen) - 2


def _parts(
    strata: Sequence[Stratum],
    known: Mapping[tuple[str, int], QuotedPage],
    unseen: tuple[QuotedPage, QuotedPage],
    amounts_of: AmountsOf,
) -> Iterator[_Part]:
    page_count = sum(stratum.page_count for stratum in strata)
    added = [amounts_of(page).numbers for page in unseen]
    for stratum in strata:
        ids = set(stratum.document_ids)
        known_pages = sum(document_id in ids for document_id, _ in known)
        rows = [amounts_of(known[place].as_new()).numbers for place in sorted(stratum.drawn)]
        added_weight = UNSEEN_WEIGHT * stratum.page_count / page_count
        yield _Part(
            seen=np.array([*rows, *added], dtype=np.int64),
            weights=np.array([*_weights(len(rows)), added_weight, added_weight]),
            unknown_pages=stratum.page_count - known_pages,
        )


def _weights(drawn_pages: int) -> list[float]:
    """n pages that weigh n − 2 together give sums with the variance of the expansion estimator."""
    return [max(drawn_pages - 2, 1) / drawn_pages] * drawn_pages


def _draws(parts: Sequence[_Part]) -> Ints:
    """A row for each draw: the sums over all pages that are not known."""
    random = np.random.default_rng(SEED)
    sums = np.zeros((DRAWS, len(Amounts().numbers)), dtype=np.int64)
    for part in parts:
        shares = random.dirichlet(part.weights, size=DRAWS)
        sums += random.multinomial(part.unknown_pages, shares) @ part.seen
    return sums


def _expected(parts: Sequence[_Part]) -> Ints:
    """The drawn pages' mean for each page that is not known, rounded once."""
    expected = [Fraction(0)] * len(Amounts().numbers)
    for part in parts:
        sums = part.seen[: part.drawn_pages].sum(axis=0)
        for place, one in enumerate(sums):
            expected[place] += Fraction(int(one) * part.unknown_pages, part.drawn_pages)
    return np.array([half_even(one.numerator, one.denominator) for one in expected], dtype=np.int64)


def _amounts(numbers: Ints) -> Amounts:
    return Amounts.of(int(number) for number in numbers)
