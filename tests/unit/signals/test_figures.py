"""What lies in a drawing was not written by hand; what lies beside it may be."""

from __future__ import annotations

from PIL import Image

from models.errors import EngineError
from models.geometry import Box
from models.page import Region, RegionKind
from pipeline.signals.figures import OneLook, find_figures, outside_figures
from pipeline.signals.handwriting import HandwrittenArea, handwriting_of
from pipeline.signals.view import PageView, view_page
from tests.unit.signals.pages import blank_page

FIGURE = Box(100.0, 100.0, 400.0, 350.0)


class FakeLayout:
    def __init__(self, *regions: Region) -> None:
        self.found = regions
        self.asked = 0

    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        self.asked += 1
        return self.found


class BrokenLayout:
    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        raise EngineError("the layout network failed")


def figure(box: Box, kind: RegionKind = RegionKind.FIGURE) -> Region:
    return Region(kind=kind, box=box, confidence=0.4)


def empty_view() -> PageView:
    return view_page(blank_page(), ())


def area(probability: float, left: int, top: int, right: int, bottom: int) -> HandwrittenArea:
    return HandwrittenArea(
        probability=probability, ink=5.0, left_px=left, top_px=top, right_px=right, bottom_px=bottom
    )


def test_strokes_of_a_drawing_are_left_out_and_the_signature_beside_it_stays() -> None:
    drawn, unlikely, signed = (
        area(0.9, 120, 120, 300, 300),
        area(0.4, 310, 200, 390, 340),
        area(0.7, 450, 200, 600, 240),
    )

    left = outside_figures(handwriting_of([drawn, unlikely, signed]), [FIGURE], empty_view())

    assert left.areas == (signed,)
    assert left.unlikely == ()
    assert left.probability == 0.7
    assert left.ink == 5.0


def test_a_note_that_reaches_out_of_a_drawing_stays() -> None:
    note = area(0.8, 350, 200, 500, 240)

    assert outside_figures(handwriting_of([note]), [FIGURE], empty_view()).areas == (note,)


def test_nothing_written_is_left_where_all_lies_in_figures() -> None:
    left = outside_figures(handwriting_of([area(0.9, 110, 110, 390, 340)]), [FIGURE], empty_view())

    assert (left.probability, left.ink, left.areas) == (0.0, 0.0, ())


def test_tables_and_figures_as_large_as_the_page_do_not_count() -> None:
    layout = FakeLayout(
        figure(FIGURE), figure(Box(10.0, 10.0, 780.0, 1100.0)), figure(FIGURE, RegionKind.TABLE)
    )

    assert find_figures(empty_view(), layout) == (FIGURE,)


def test_a_network_that_fails_finds_no_figure() -> None:
    assert find_figures(empty_view(), BrokenLayout()) == ()


def test_one_look_asks_once() -> None:
    layout = FakeLayout(figure(FIGURE))
    look = OneLook(layout)

    assert look.regions(blank_page()) == look.regions(blank_page()) == (figure(FIGURE),)
    assert layout.asked == 1
