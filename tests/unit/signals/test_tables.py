from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

import pytest
from PIL import Image

from models.errors import EngineError
from models.geometry import Box
from models.page import Region, RegionKind
from models.text import Word
from tests.unit.signals.pages import blank_page, rule, tables_of, write, write_lines


@dataclass
class ScriptedLayout:
    """Says what it is told to, and remembers the pictures that it was shown."""

    confidence: float | None = None
    failure: EngineError | None = None
    shown: list[tuple[int, int]] = field(default_factory=list)

    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        self.shown.append(image.size)
        if self.failure is not None:
            raise self.failure
        if self.confidence is None:
            return ()
        return (Region(kind=RegionKind.TABLE, box=Box(50, 60, 400, 300), confidence=self.confidence),)


XS = (100, 260, 360, 460, 560, 660)
YS = (200, 240, 280, 320, 360, 400)


def grid(page: Image.Image, *, without: tuple[tuple[float, float, float, float], ...] = ()) -> None:
    """Five by five cells, without the named pieces of rule (left, top, right, bottom)."""
    for y in YS:
        for left, right in itertools.pairwise(XS):
            if (left, y, right, y) not in without:
                rule(page, (left, y), (right, y))
    for x in XS:
        for top, bottom in itertools.pairwise(YS):
            if (x, top, x, bottom) not in without:
                rule(page, (x, top), (x, bottom))


def rows_of(html: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]


def test_spans_in_head_and_stub_and_empty_cells_keep_their_places() -> None:
    page = blank_page()
    grid(
        page,
        without=(
            (360, 200, 360, 240),  # Spring over two columns
            (560, 200, 560, 240),  # Autumn over two columns
            (100, 240, 260, 240),  # Station over two rows
            (100, 320, 260, 320),  # Upper weir over two rows
        ),
    )
    words: list[Word] = []
    for text, left, top in (
        ("Station", 110, 230), ("Spring", 320, 212), ("Autumn", 520, 212),
        ("April", 280, 252), ("May", 380, 252), ("Sept", 480, 252), ("Oct", 580, 252),
        ("Upper weir", 110, 312), ("41", 280, 292), ("58", 480, 292), ("77 < 80", 580, 292),
        ("39", 280, 332), ("52", 380, 332), ("Old quarry", 110, 372), ("61", 480, 372),
    ):  # fmt: skip
        words += write(page, text, left, top)

    [table] = tables_of(page, words, ScriptedLayout()).tables

    assert table.html.startswith('<table><tr><td rowspan="2">Station</td><td colspan="2">Spring</td>')
    assert rows_of(table.html) == [
        ["Station", "Spring", "Autumn"],
        ["April", "May", "Sept", "Oct"],
        ["Upper weir", "41", "", "58", "77 &lt; 80"],
        ["39", "52", "", ""],
        ["Old quarry", "", "", "61", ""],
    ]
    assert (table.box.left, table.box.top) == pytest.approx((100, 200), abs=6)
    assert (table.box.right, table.box.bottom) == pytest.approx((660, 400), abs=6)


def fill(page: Image.Image) -> list[Word]:
    return [
        word
        for row, y in enumerate(YS[:-1])
        for column, x in enumerate(XS[:-1])
        for word in write(page, f"r{row}c{column}", x + 12, y + 12)
    ]


def test_a_ruled_table_is_counted_by_its_cells_without_the_network() -> None:
    page, layout = blank_page(), ScriptedLayout()
    grid(page)

    evidence = tables_of(page, fill(page), layout)

    assert evidence.ruled_cells == 25
    assert evidence.network_confidence is None
    assert layout.shown == []
    assert RegionKind.TABLE in {region.kind for region in evidence.regions}


@pytest.mark.parametrize("size", [(827, 1169), (1654, 2338), (2480, 3508)])
def test_boxes_are_in_page_pixels_at_any_resolution(size: tuple[int, int]) -> None:
    page = blank_page()
    grid(page)
    words, factor = fill(page), size[0] / 827
    large = page.resize(size)
    scaled = [Word(text=word.text, box=word.box.scaled(factor), confidence=1.0) for word in words]

    [table] = tables_of(large, scaled, ScriptedLayout()).tables

    assert table.box.left == pytest.approx(100 * factor, abs=6 * factor)
    assert table.box.bottom == pytest.approx(400 * factor, abs=6 * factor)


def test_no_cells_are_claimed_where_a_cell_is_no_rectangle() -> None:
    page = blank_page()
    grid(page, without=((260, 240, 260, 280), (260, 280, 360, 280)))

    evidence = tables_of(page, fill(page), ScriptedLayout())

    assert evidence.ruled_cells >= 20
    assert evidence.tables == ()


def test_no_cells_are_claimed_where_a_word_stands_on_a_rule() -> None:
    page = blank_page()
    grid(page)
    words = [*fill(page), *write(page, "across", 235, 212)]

    assert tables_of(page, words, ScriptedLayout()).tables == ()


def test_no_cells_are_claimed_where_rows_have_no_rules() -> None:
    page = blank_page()
    inner = tuple((left, y, right, y) for y in YS[2:-1] for left, right in itertools.pairwise(XS))
    grid(page, without=inner)

    evidence = tables_of(page, fill(page), ScriptedLayout())

    assert evidence.ruled_cells == 10
    assert evidence.tables == ()


def test_a_box_around_notes_is_no_table() -> None:
    page, layout = blank_page(), ScriptedLayout()
    for y in (200, 400):
        rule(page, (100, y), (660, y))
    for x in (100, 660):
        rule(page, (x, 200), (x, 400))
    words = [word for line in write_lines(page, 6, left=120, top=220) for word in line]

    evidence = tables_of(page, words, layout)

    assert (evidence.ruled_cells, evidence.aligned_rows, evidence.tables) == (0, 0, ())
    assert layout.shown == []


def columns(page: Image.Image, rows: int, lefts: tuple[int, ...] = (100, 300, 450, 600)) -> list[Word]:
    return [
        word
        for row in range(rows)
        for column, left in enumerate(lefts)
        for word in write(page, f"{column + 1}{row}.{row * 7 % 10}0", left, 200 + 24 * row)
    ]


def test_words_aligned_in_columns_are_a_table_without_rules() -> None:
    page, layout = blank_page(), ScriptedLayout()

    evidence = tables_of(page, columns(page, 12), layout)

    assert evidence.aligned_rows == 12
    assert layout.shown == []
    [region] = evidence.regions
    assert region.box.top == pytest.approx(202, abs=8)


def test_columns_of_running_text_are_no_table() -> None:
    page, layout = blank_page(), ScriptedLayout()
    words = [
        word
        for left in (60, 440)
        for n in range(30)
        for word in write(
            page, "the report was heard by all of us and then agreed"[n % 7 : 46], left, 100 + 22 * n
        )
    ]

    evidence = tables_of(page, words, layout)

    assert evidence.aligned_rows == 0
    assert layout.shown == []


def test_few_aligned_rows_are_a_case_for_the_network() -> None:
    page, layout = blank_page(), ScriptedLayout(confidence=0.9)

    evidence = tables_of(page, columns(page, 4), layout)

    assert evidence.network_confidence == 0.9
    assert len(layout.shown) == 1
    assert [region.confidence for region in evidence.regions] == [0.9]


def test_the_network_is_not_asked_where_it_could_change_nothing() -> None:
    page, layout = blank_page(), ScriptedLayout(confidence=0.9)

    assert tables_of(page, columns(page, 4), layout, may_ask=False).network_confidence is None
    assert layout.shown == []


def test_a_network_that_fails_costs_its_opinion_not_the_page() -> None:
    page = blank_page()

    evidence = tables_of(page, columns(page, 4), ScriptedLayout(failure=EngineError("out of memory")))

    assert evidence.network_confidence is None
    assert evidence.aligned_rows == 4


def test_three_long_rules_without_sides_are_a_case_for_the_network() -> None:
    page, layout = blank_page(), ScriptedLayout(confidence=0.4)
    for y in (190, 230, 420):
        rule(page, (90, y), (700, y))

    evidence = tables_of(page, columns(page, 2), layout)

    assert len(layout.shown) == 1
    assert evidence.network_confidence == 0.4
    assert evidence.regions == ()
