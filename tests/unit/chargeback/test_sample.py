"""Which pages are drawn, and how often the truth lies in the interval that they give."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.page import Route
from pipeline.chargeback.quote import QuotedDocument
from pipeline.chargeback.quote_pages import QuotedPage, Way
from pipeline.chargeback.quote_sums import Spread, page_amounts, total
from pipeline.chargeback.sample import Stratum, draw_sample, over_sample, unseen_pages
from pipeline.planning.configured import load_plan
from pipeline.settings import VlmSettings
from tests.unit.chargeback.quoted import PRICES, call, document, page

PLAN = load_plan(VlmSettings())

Population = Mapping[str, Sequence[QuotedPage]]


def drawn_by_document(strata: Sequence[Stratum]) -> Mapping[str, int]:
    drawn = [document_id for stratum in strata for document_id, _ in stratum.drawn]
    return {document_id: drawn.count(document_id) for document_id in drawn}


@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=30),
    share=st.floats(0.001, 0.999),
)
def test_as_many_pages_are_drawn_as_were_asked_for_and_each_document_has_its_share(
    counts: list[int], share: float
) -> None:
    page_counts = {str(number): count for number, count in enumerate(counts)}
    page_count = sum(counts)
    wanted = max(1, int(share * page_count))
    strata = draw_sample(page_counts, wanted)
    places = [place for stratum in strata for place in stratum.drawn]
    assert len(places) == len(set(places)) == wanted
    assert all(1 <= number <= page_counts[document_id] for document_id, number in places)
    assert sorted(one for stratum in strata for one in stratum.document_ids) == sorted(page_counts)
    assert sum(stratum.page_count for stratum in strata) == page_count
    for stratum in strata:
        assert abs(len(stratum.drawn) - wanted * stratum.page_count / page_count) < 1


def test_the_same_pages_are_drawn_again_and_others_from_other_documents() -> None:
    page_counts = {"a": 100, "b": 3, "c": 3, "d": 300}
    assert draw_sample(page_counts, 40) == draw_sample(page_counts, 40)
    numbers = [{number for _, number in stratum.drawn} for stratum in draw_sample({"x": 50, "y": 50}, 20)]
    assert numbers[0] != numbers[1]


def test_long_documents_stand_alone_and_short_ones_together() -> None:
    strata = draw_sample({"long": 100, "short": 2, "brief": 2, "longer": 200}, 50)
    assert [stratum.document_ids for stratum in strata] == [("long",), ("longer", "short", "brief")]
    assert drawn_by_document(strata)["long"] == 16
    many = draw_sample({str(number): 1 for number in range(100)}, 20)
    assert [len(stratum.document_ids) for stratum in many] == [25, 25, 25, 25]
    assert [len(stratum.drawn) for stratum in many] == [5, 5, 5, 5]


def sampled(population: Population, wanted: int, *, way: Way = Way.TRIAGED) -> Spread:
    strata = draw_sample({name: len(pages) for name, pages in population.items()}, wanted)
    drawn = {place for stratum in strata for place in stratum.drawn}
    documents = [
        document(name, *(one for one in pages if (name, one.page_number) in drawn), page_count=len(pages))
        for name, pages in population.items()
    ]
    spread = over_sample(documents, strata, unseen_pages(documents, PLAN))
    return spread(lambda one: page_amounts(one, way, PRICES))


def made_set(seed: int, *, share: float, documents: int = 12) -> Population:
    """Documents of 10 to 80 pages, of which ``share`` go to the VLM: more of some, fewer of others."""
    chance = random.Random(seed)

    def pages() -> Iterator[QuotedPage]:
        own_share = min(1.0, share * chance.choice((0.2, 0.8, 2.0)))
        for number in range(1, chance.randint(10, 80) + 1):
            route = Route.VLM if chance.random() < own_share else Route.OCR
            yield page(number, route, call=call(chance.randint(300, 2_240)))

    return {f"{seed}-{name}": tuple(pages()) for name in range(documents)}


@pytest.mark.parametrize(("share", "wanted"), [(0.3, 60), (0.02, 40), (0.9, 40), (0.3, 12)])
def test_nine_times_in_ten_and_more_the_truth_lies_in_the_interval(share: float, wanted: int) -> None:
    """It is a 95 % interval; forty sets leave some room for chance, but the sets are always the same."""
    sets = [made_set(seed, share=share) for seed in range(40)]
    hits, cost_hits = 0, 0
    for population in sets:
        truth = total(page_amounts(one, Way.TRIAGED, PRICES) for one in _all_pages(population))
        spread = sampled(population, wanted)
        tokens, cost = spread.count("visual_tokens"), spread.range("total_micro")
        assert tokens.low <= tokens.about <= tokens.high
        hits += tokens.low <= truth.visual_tokens <= tokens.high
        cost_hits += cost.low <= truth.total_micro_about <= cost.high
    assert hits >= 36
    assert cost_hits >= 38


def _all_pages(population: Population) -> Iterator[QuotedPage]:
    return (one for pages in population.values() for one in pages)


def test_a_larger_sample_narrows_the_interval_and_a_whole_one_closes_it() -> None:
    population = made_set(1, share=0.3)
    page_count = sum(map(len, population.values()))
    few, many = (sampled(population, wanted).count("visual_tokens") for wanted in (40, 200))
    assert many.high - many.low < 0.7 * (few.high - few.low)
    nearly_all = sampled(population, page_count - 1).count("calls")
    assert nearly_all.high - nearly_all.low <= 1


@pytest.mark.parametrize(("route", "about"), [(Route.OCR, 0), (Route.VLM, 400)])
def test_pages_that_are_all_alike_do_not_promise_that_the_others_are(route: Route, about: int) -> None:
    population = {"a": [page(number, route) for number in range(1, 401)]}
    calls = sampled(population, 40).count("calls")
    assert calls.about == about
    assert 5 <= max(calls.high - about, about - calls.low) <= 50
    assert min(calls.high - about, about - calls.low) == 0


def test_a_sample_of_blank_pages_alone_leaves_room_for_pages_that_cost() -> None:
    population = {"a": [page(number, Route.BLANK) for number in range(1, 101)]}
    spread = sampled(population, 10)
    assert spread.about.calls == 0
    assert spread.high.visual_tokens > PLAN.tiers[-1].visual_tokens


def test_pages_that_an_earlier_run_paid_for_say_what_the_others_are_and_cost_nothing() -> None:
    population = {"a": [page(number, is_due=False, was_read=True) for number in range(1, 101)]}
    spread = sampled(population, 20)
    assert spread.about.calls == 80
    assert spread.about.cpu_pages == 80


def test_documents_that_were_read_wholly_are_taken_as_they_are() -> None:
    pages = [page(number) for number in range(1, 51)]
    strata = draw_sample({"a": 50}, 20)
    documents: list[QuotedDocument] = [document("a", *pages)]
    spread = over_sample(documents, strata, unseen_pages(documents, PLAN))
    calls = spread(lambda one: page_amounts(one, Way.TRIAGED, PRICES)).count("calls")
    assert (calls.low, calls.about, calls.high) == (50, 50, 50)
