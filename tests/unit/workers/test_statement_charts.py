"""Charts of a statement: what they show. How they look is for eyes."""

from __future__ import annotations

import base64
import io
import re
from datetime import date
from pathlib import Path

import pytest
from PIL import Image

from pipeline.chargeback.statement_lines import StatementBy
from pipeline.store import open_store
from pipeline.store.statements import StatementStore
from tests.fakes.ledger import EUROS, book, cpu_page, every_kind, vlm_call
from workers.statement_charts import ChartFigures, chart_figures, chart_html, chart_png


def figures(folder: Path, first_day: str = "2026-11-01", end_day: str = "2026-12-01") -> ChartFigures:
    ledger = StatementStore(open_store(folder).database)
    sums = ledger.sums((StatementBy.TEAM, StatementBy.DAY), first_day, end_day)
    return chart_figures(sums, first_day, end_day)


def test_cost_is_by_currency_team_and_day_and_tokens_by_team_and_day(tmp_path: Path) -> None:
    every_kind(open_store(tmp_path))
    told = figures(tmp_path)
    assert not told.is_monthly
    assert told.cost_micro["EUR"] == {"4711": {date(2026, 11, 4): 493}}
    assert told.cost_micro["USD"]["research"][date(2026, 11, 6)] == -986
    assert told.avoided_tokens["research"][date(2026, 11, 2)] == 3_600


def test_many_days_are_months(tmp_path: Path) -> None:
    book(open_store(tmp_path), *(vlm_call(day) for day in ("2026-01-31", "2026-02-01", "2026-02-28")))
    told = figures(tmp_path, "2026-01-01", "2027-01-01")
    assert told.is_monthly
    assert told.cost_micro["USD"]["retail"] == {date(2026, 1, 1): 493, date(2026, 2, 1): 986}


@pytest.mark.parametrize("window", [("2026-11-01", "2026-12-01"), ("2026-01-01", "2027-01-01")])
def test_a_png_is_a_picture_also_of_nothing(tmp_path: Path, window: tuple[str, str]) -> None:
    store = open_store(tmp_path)
    empty = chart_png(figures(tmp_path, *window))
    every_kind(store)
    full = chart_png(figures(tmp_path, *window))
    sizes = [Image.open(io.BytesIO(picture)).size for picture in (empty, full)]
    assert all(width > 1_000 for width, _ in sizes)
    assert sizes[1][1] > sizes[0][1]


def svg_of(page: str) -> str:
    [encoded] = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", page)
    return base64.b64decode(encoded).decode()


def test_html_holds_its_picture_and_asks_the_network_for_nothing(tmp_path: Path) -> None:
    every_kind(open_store(tmp_path))
    page = chart_html(figures(tmp_path))
    assert "<svg" in svg_of(page)
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert "2026-11-01 to 2026-11-30" in page


def test_odd_team_names_are_shown_as_they_are(tmp_path: Path) -> None:
    teams = ("_hidden", "$x^2$", "<b>bold</b>")
    book(open_store(tmp_path), *(vlm_call("2026-11-02", cost_centre=team.replace("/", "")) for team in teams))
    svg = svg_of(chart_html(figures(tmp_path)))
    for comment in ("_hidden", "$x^2$", "&lt;b&gt;bold&lt;b&gt;"):
        assert f"<!-- {comment} -->" in svg


def test_beyond_a_palette_teams_are_gathered(tmp_path: Path) -> None:
    rows = [vlm_call("2026-11-02", cost_centre=f"team {number}", cost_micro=number) for number in range(12)]
    book(open_store(tmp_path), *rows, cpu_page("2026-11-02", EUROS, cost_centre="team 0", avoided_tokens=1))
    svg = svg_of(chart_html(figures(tmp_path)))
    shown = re.findall(r"<!-- ((?:team|\d+ other) [\w ]+) -->", svg)
    assert shown == ["team 0", *(f"team {number}" for number in range(11, 5, -1)), "5 other teams"]
