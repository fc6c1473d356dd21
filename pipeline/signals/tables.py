"""Evidence of tables: ruled cells that hold words, words aligned in columns, and where those two leave a
doubt, the layout network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PIL import Image

from models.errors import EngineError
from models.geometry import Box
from models.page import Region, RegionKind, Table
from pipeline.ports import LayoutDetector
from pipeline.signals.alignment import AlignedRun, aligned_runs, rows_of_pieces
from pipeline.signals.grids import GridCell, grid_cells
from pipeline.signals.rules import RuledArea, Rules, parallel_rules, ruled_areas
from pipeline.signals.table_html import table_html
from pipeline.signals.view import PageView

LEAST_COLUMNS: Final = 3
"""Two columns of short pieces are as often a form, a letterhead or a list as a table."""

LEAST_CELLS: Final = 4
"""Two by two cells with words: fewer are boxes around notes."""

CERTAIN_CELLS: Final = 6
CERTAIN_ROWS: Final = 7
"""From here on the cheap evidence decides alone; the settings' thresholds have the same values."""

DOUBTFUL_CELLS: Final = 2
DOUBTFUL_ROWS: Final = 3
DOUBTFUL_RULES: Final = 3
"""From here on the layout network (0.2 s) is asked; below, no table was ever found by it alone."""

MOST_BEYOND_CELL: Final = 0.3
"""Readers' boxes take in a bit of the rule beside the word, but not this share of the word's width."""

LEAST_NETWORK_CONFIDENCE: Final = 0.5
"""Weaker boxes of the network are not reported as regions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEvidence:
    """``ruled_cells``: cells with words in the largest grid. ``aligned_rows``: rows of the longest aligned
    run. ``network_confidence``: the layout network's best table, None where it was not asked. Boxes are in
    the page."""

    ruled_cells: int
    aligned_rows: int
    network_confidence: float | None
    regions: tuple[Region, ...]
    tables: tuple[Table, ...]


def find_tables(
    view: PageView, rules: Rules, layout: LayoutDetector, *, may_ask_network: bool
) -> TableEvidence:
    grids = [
        (area, grid_cells(area, rules, view))
        for area in ruled_areas(rules)
        if area.rows >= 2 and area.columns >= 2
    ]
    runs = aligned_runs(rows_of_pieces(view), view.text_height_px, LEAST_COLUMNS)
    ruled_cells = max((_cells_with_words(cells) for _, cells in grids), default=0)
    aligned_rows = max((run.rows for run in runs), default=0)
    seen = None
    if may_ask_network and _is_doubtful(ruled_cells, aligned_rows, parallel_rules(rules)):
        seen = _network_regions(view, layout)
    known = _ruled_regions(grids, view) + _aligned_regions(runs, view)
    return TableEvidence(
        ruled_cells=ruled_cells,
        aligned_rows=aligned_rows,
        network_confidence=None if seen is None else _best_table(seen),
        regions=known + tuple(region for region in seen or () if _is_news(region, known)),
        tables=_tables(grids, view),
    )


def _cells_with_words(cells: Sequence[GridCell]) -> int:
    return sum(bool(cell.word_indices) for cell in cells)


def _is_doubtful(ruled_cells: int, aligned_rows: int, rules_in_parallel: int) -> bool:
    if ruled_cells >= CERTAIN_CELLS or aligned_rows >= CERTAIN_ROWS:
        return False
    return (
        ruled_cells >= DOUBTFUL_CELLS or aligned_rows >= DOUBTFUL_ROWS or rules_in_parallel >= DOUBTFUL_RULES
    )


def _network_regions(view: PageView, layout: LayoutDetector) -> tuple[Region, ...] | None:
    """Tables and figures on the view, in pixels of the page; None where the network failed, which is no
    reason to lose a page that was read."""
    picture = Image.fromarray(view.grey if view.rgb is None else view.rgb)
    try:
        seen = layout.regions(picture)
    except EngineError:
        return None
    return tuple(
        Region(kind=region.kind, box=region.box.scaled(1 / view.scale), confidence=region.confidence)
        for region in seen
    )


def _best_table(regions: Sequence[Region]) -> float:
    return max(
        (region.confidence or 0.0 for region in regions if region.kind is RegionKind.TABLE), default=0.0
    )


def _is_news(region: Region, known: Sequence[Region]) -> bool:
    """Sure enough, and no table that the cheap evidence has already."""
    if (region.confidence or 0.0) < LEAST_NETWORK_CONFIDENCE:
        return False
    return region.kind is not RegionKind.TABLE or not any(
        region.box.intersection(other.box) >= 0.5 * min(region.box.area, other.box.area) for other in known
    )


def _ruled_regions(
    grids: Sequence[tuple[RuledArea, tuple[GridCell, ...]]], view: PageView
) -> tuple[Region, ...]:
    return tuple(
        Region(kind=RegionKind.TABLE, box=_area_box(area, view))
        for area, cells in grids
        if _cells_with_words(cells) >= LEAST_CELLS
    )


def _aligned_regions(runs: Sequence[AlignedRun], view: PageView) -> tuple[Region, ...]:
    return tuple(
        Region(kind=RegionKind.TABLE, box=view.page_box(run.left_px, run.top_px, run.right_px, run.bottom_px))
        for run in runs
        if run.rows >= CERTAIN_ROWS
    )


def _tables(grids: Sequence[tuple[RuledArea, tuple[GridCell, ...]]], view: PageView) -> tuple[Table, ...]:
    return tuple(
        Table(box=_area_box(area, view), html=html)
        for area, cells in grids
        if _cells_with_words(cells) >= LEAST_CELLS
        and not _has_loose_words(area, cells, view)
        and (html := table_html(cells, view)) is not None
    )


def _has_loose_words(area: RuledArea, cells: Sequence[GridCell], view: PageView) -> bool:
    """Words within the grid that stand on a rule or reach across one: the grid is not what the eye sees."""
    boxes = view.word_boxes
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    inside = (
        (middles[:, 0] > area.left_px)
        & (middles[:, 0] < area.right_px)
        & (middles[:, 1] > area.top_px)
        & (middles[:, 1] < area.bottom_px)
    )
    if int(np.count_nonzero(inside)) > sum(len(cell.word_indices) for cell in cells):
        return True
    return any(
        max(cell.left_px - left, right - cell.right_px) > MOST_BEYOND_CELL * (right - left)
        for cell in cells
        for left, _, right, _ in boxes[list(cell.word_indices)]
    )


def _area_box(area: RuledArea, view: PageView) -> Box:
    return view.page_box(area.left_px, area.top_px, area.right_px, area.bottom_px)
