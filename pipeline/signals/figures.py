"""Drawings, plots and pictures on a page, and what they say of handwriting: what is drawn in one was not written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PIL import Image

from models.errors import EngineError
from models.geometry import Box
from models.page import Region, RegionKind
from pipeline.ports import LayoutDetector
from pipeline.signals.handwriting import Handwriting, handwriting_of
from pipeline.signals.view import PageView

MOST_PAGE_SHARE: Final = 0.4
"""The layout network takes whole letters, forms and receipts for figures; drawings among text are smaller."""

TOLERANCE: Final = 0.4
"""Ink may stand out of a figure's box by so much of the text height."""


class OneLook:
    """A ``LayoutDetector`` for one page that is asked at most once, whoever wants to know."""

    def __init__(self, layout: LayoutDetector) -> None:
        self._layout = layout
        self._seen: tuple[Region, ...] | None = None

    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        """Raises what the detector raises. All callers must show the same page at the same size."""
        if self._seen is None:
            self._seen = self._layout.regions(image)
        return self._seen


def find_figures(view: PageView, layout: LayoutDetector) -> tuple[Box, ...]:
    """In view pixels; none where the network fails, which is no reason to lose a page that was read."""
    picture = Image.fromarray(view.grey if view.rgb is None else view.rgb)
    try:
        seen = layout.regions(picture)
    except EngineError:
        return ()
    most = MOST_PAGE_SHARE * view.width_px * view.height_px
    return tuple(
        region.box for region in seen if region.kind is RegionKind.FIGURE and region.box.area <= most
    )


def outside_figures(handwriting: Handwriting, figures: Sequence[Box], view: PageView) -> Handwriting:
    """``handwriting`` without the areas that lie in a figure. One that reaches out of it stays: it may be a note."""
    reach = TOLERANCE * view.text_height_px
    wider = [Box(box.left - reach, box.top - reach, box.right + reach, box.bottom + reach) for box in figures]
    return handwriting_of(
        area
        for area in (*handwriting.areas, *handwriting.unlikely)
        if not any(
            box.left <= area.left_px
            and box.top <= area.top_px
            and area.right_px <= box.right
            and area.bottom_px <= box.bottom
            for box in wider
        )
    )
