"""Quote files that somebody edited."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from models.errors import SettingsError
from models.page import Route
from pipeline.chargeback.quote import QuoteTerms, make_quote, over_all_pages
from pipeline.chargeback.quote_file import read_quote, saved
from tests.unit.chargeback.quoted import NAME, PRICES, document, page

Json = dict[str, Any]


def quote_document() -> Json:
    now = datetime.now(UTC)
    terms = QuoteTerms(cost_centre="claims", model_id="seven", prices=PRICES, begun_at=now, when=now)
    documents = [document(NAME, page(1), page(2, Route.OCR))]
    quote = make_quote(documents, (), terms, spread_over=over_all_pages(documents))
    written: Json = json.loads(saved(quote).model_dump_json())
    return written


def write(folder: Path, quote: Json) -> Path:
    path = folder / "quote.json"
    path.write_text(json.dumps(quote), encoding="utf-8")
    return path


def first_page(quote: Json) -> Json:
    one: Json = quote["documents"][0]["pages"][0]
    return one


def begin_tomorrow(quote: Json) -> None:
    quote["begun_at"] = (datetime.now(UTC) + timedelta(days=1)).isoformat()


def mix_up_cost(quote: Json) -> None:
    quote["ways"]["triaged"]["total_micro"] |= {"low": 9, "about": 5, "high": 7}


def test_a_quote_that_was_just_made_is_read(tmp_path: Path) -> None:
    assert read_quote(write(tmp_path, quote_document())).currency == "USD"


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda quote: first_page(quote).update(visual_tokens=-1), "visual_tokens"),
        (lambda quote: first_page(quote)["prompt_tokens"].update(low=-1), "prompt_tokens.low"),
        (lambda quote: first_page(quote)["prompt_tokens"].update(low=10**6), "prompt_tokens: low 1000000"),
        (mix_up_cost, "ways.triaged.total_micro: low 9, about 5 and high 7 are out of order"),
        (lambda quote: quote["pages_by_route"]["ocr"].update(high=0), "pages_by_route.ocr: low 1"),
        (lambda quote: quote.update(currency="XYZ"), "currency: 'XYZ' is no ISO 4217 code"),
        (lambda quote: quote["documents"].append(quote["documents"][0]), f"document {NAME} is there 2 times"),
        (lambda quote: quote["documents"][0]["pages"].append(first_page(quote)), "page 1 is there 2 times"),
        (lambda quote: quote["ways"].pop("triaged"), "ways: triaged is missing"),
        (lambda quote: quote["pages_by_route"].pop("ocr"), "pages_by_route: ocr is missing"),
        (begin_tomorrow, "is in the future"),
    ],
)
def test_what_doctriage_does_not_write_is_refused_in_one_line(
    tmp_path: Path, edit: Callable[[Json], None], told: str
) -> None:
    quote = quote_document()
    edit(quote)
    with pytest.raises(SettingsError, match="name a file that doctriage quote --save wrote") as refusal:
        read_quote(write(tmp_path, quote))
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)
