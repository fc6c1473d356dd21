"""Sheets of paper with marks on them: empty backs, stamps, ruled tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps
from reportlab.pdfgen.canvas import Canvas

from tests.kinds.judging import NEEDS_SEEING, Cousin, Expected
from tests.kinds.paper import drawn_pdf, pasted, printed, typeface, write_lines, written_image

SHEET_PX = (1240, 1754)
LICENCE = (
    "Licence to keep bees in town",
    "The holder may keep up to four hives on the flat roof of",
    "the school and shall look after them at least twice a week.",
    "Honey may be sold at the gate on Saturdays until noon. The",
    "hives are to be moved within three days when the building",
    "office asks for it, and the holder pays for any damage done.",
    "This licence ends on the last day of October of next year.",
)
SPARSE = {
    "page_number_only": ("- 214 -",),
    "left_blank_on_purpose": ("This page is left blank on purpose.",),
    "two_words": ("Appendix C",),
}

Mark = Callable[[Image.Image], Image.Image]


def empty_backs() -> Iterator[Cousin]:
    """Nothing is written there, whatever the paper and the scanner left on it."""
    marks: dict[str, tuple[Mark, ...]] = {
        "clean": (),
        "specks": (_specks,),
        "punch_holes": (_holes_left,),
        "four_holes_at_the_top": (_holes_top,),
        "edge_shadow": (_shadow,),
        "black_scanner_edges": (_black_edges,),
        "fold_lines": (_folds,),
        "show_through": (_show_through,),
        "staple_and_corner": (_staple,),
        "grain": (_grain,),
        "all_of_it": (_specks, _holes_left, _shadow, _folds, _grain),
        "dark_edges_and_specks": (_black_edges, _specks, _grain),
    }
    for name, all_marks in marks.items():
        yield _empty(name, ".jpg", all_marks)
    yield _empty("tinted_paper", ".jpg", (_specks, _grain), paper=205)
    yield _empty("one_bit_dust", ".png", (_dust,), mode="1")
    yield _empty("in_a_pdf", ".pdf", (_specks, _holes_left, _shadow))


def nearly_empty() -> Iterator[Cousin]:
    """The other side of that coin: a few words on an empty sheet are text, and get read."""
    for name, lines in SPARSE.items():
        yield _sparse(name, lines)


def stamped_sheets() -> Iterator[Cousin]:
    """A stamp across the printed lines hides words: the page needs seeing, the rest of it is still read."""
    red, blue = (200, 30, 45), (35, 50, 160)
    yield _stamped("round_red", red, _ring)
    yield _stamped("round_blue", blue, _ring)
    yield _stamped("oval_red", red, lambda size, ink: _ring(size, ink).resize((size, size * 2 // 3)))
    yield _stamped("box_red", red, _box)
    yield _stamped(
        "box_blue_slanted", blue, lambda size, ink: _box(size, ink).rotate(12, fillcolor="white", expand=True)
    )


def ruled_tables() -> Iterator[Cousin]:
    """Cells that span, and cells without content, keep every value under its heading."""
    yield _table("table_as_print", is_scan=False)
    yield _table("table_as_scan", is_scan=True)


def _empty(name: str, suffix: str, marks: Sequence[Mark], *, paper: int = 244, mode: str = "L") -> Cousin:
    def write(path: Path) -> None:
        sheet = Image.new("L", SHEET_PX, paper)
        for mark in marks:
            sheet = mark(sheet)
        if suffix == ".pdf":
            drawn_pdf(path, lambda canvas: pasted(canvas, sheet))
        else:
            sheet.convert(mode).save(path, dpi=(150, 150))

    expected = Expected(routes=frozenset({"blank"}), longest_text=0)
    return Cousin(name=f"blank_{name}", suffix=suffix, write=write, expected=expected)


def _specks(sheet: Image.Image) -> Image.Image:
    chance = np.random.default_rng(11)
    pen = ImageDraw.Draw(sheet)
    for _ in range(40):
        x, y, size, tone = (
            int(chance.integers(*span)) for span in ((20, 1220), (20, 1730), (1, 4), (60, 190))
        )
        pen.ellipse((x, y, x + size, y + size), fill=tone)
    return sheet


def _dust(sheet: Image.Image) -> Image.Image:
    chance = np.random.default_rng(5)
    samples = np.array(sheet)
    rows, columns = chance.integers(0, samples.shape[0], 400), chance.integers(0, samples.shape[1], 400)
    samples[rows, columns] = 0
    return Image.fromarray(samples)


def _holes(sheet: Image.Image, centres: Sequence[tuple[int, int]]) -> Image.Image:
    pen = ImageDraw.Draw(sheet)
    for x, y in centres:
        pen.ellipse((x - 18, y - 18, x + 18, y + 18), fill=45)
    return sheet.filter(ImageFilter.GaussianBlur(1.2))


def _holes_left(sheet: Image.Image) -> Image.Image:
    return _holes(sheet, [(70, 640), (70, 1110)])


def _holes_top(sheet: Image.Image) -> Image.Image:
    return _holes(sheet, [(x, 64) for x in (150, 463, 777, 1090)])


def _shadow(sheet: Image.Image) -> Image.Image:
    ramp = np.ones((SHEET_PX[1], SHEET_PX[0]))
    ramp[:, -36:] = np.linspace(1, 0.35, 36)
    ramp[-14:, :] *= np.linspace(1, 0.6, 14)[:, None]
    return Image.fromarray((np.asarray(sheet) * ramp).astype(np.uint8))


def _black_edges(sheet: Image.Image) -> Image.Image:
    pen = ImageDraw.Draw(sheet)
    pen.rectangle((0, 0, 1240, 26), fill=8)
    pen.polygon([(0, 0), (48, 0), (14, 1754), (0, 1754)], fill=5)
    pen.rectangle((1222, 0, 1240, 1754), fill=10)
    return sheet


def _folds(sheet: Image.Image) -> Image.Image:
    pen = ImageDraw.Draw(sheet)
    for y in (585, 1170):
        pen.line((0, y, 1240, y + 3), fill=205, width=3)
        pen.line((0, y + 3, 1240, y + 6), fill=252, width=2)
    pen.line((620, 0, 622, 1754), fill=212, width=2)
    return sheet


def _show_through(sheet: Image.Image) -> Image.Image:
    """The front's print, mirrored and faint."""
    front = written_image([*LICENCE] * 3, size_px=SHEET_PX, font_px=30)
    ghost = ImageOps.mirror(front).filter(ImageFilter.GaussianBlur(2.5))
    return ImageChops.subtract(sheet, ghost.point(lambda value: (255 - value) * 16 // 255))


def _staple(sheet: Image.Image) -> Image.Image:
    pen = ImageDraw.Draw(sheet)
    pen.line((48, 70, 96, 40), fill=110, width=5)
    pen.polygon([(1240, 0), (1165, 0), (1240, 82)], fill=200)
    return sheet


def _grain(sheet: Image.Image) -> Image.Image:
    noise = np.random.default_rng(3).normal(0, 4, (SHEET_PX[1], SHEET_PX[0]))
    return Image.fromarray(np.clip(np.asarray(sheet) + noise, 0, 255).astype(np.uint8))


def _sparse(name: str, lines: Sequence[str]) -> Cousin:
    def write(path: Path) -> None:
        sheet = _shadow(_specks(Image.new("L", SHEET_PX, 246)))
        write_lines(sheet, lines, font_px=28, left_px=480, top_px=820, leading_px=44)
        sheet.save(path, dpi=(150, 150))

    expected = Expected(must=tuple(lines), not_routes=frozenset({"blank"}), edit_share=0.06)
    return Cousin(name=f"nearly_blank_{name}", suffix=".jpg", write=write, expected=expected)


def _stamped(
    name: str, ink: tuple[int, int, int], stamp: Callable[[int, tuple[int, int, int]], Image.Image]
) -> Cousin:
    def write(path: Path) -> None:
        page = written_image(LICENCE, size_px=(1240, 900), font_px=28, leading_px=58).convert("RGB")
        mark = stamp(330, ink).rotate(-7, fillcolor="white", expand=True)
        ground = Image.new("RGB", page.size, "white")
        ground.paste(mark, (720, 250))
        ImageChops.multiply(page, ground).save(path, quality=88, dpi=(150, 150))

    expected = Expected(
        must=(LICENCE[0], "The holder may keep up to four hives", "This licence ends on the last day"),
        routes=NEEDS_SEEING,
        edit_share=0.08,
    )
    return Cousin(name=f"stamp_{name}", suffix=".jpg", write=write, expected=expected)


def _ring(size: int, ink: tuple[int, int, int]) -> Image.Image:
    mark = Image.new("RGB", (size, size), "white")
    pen = ImageDraw.Draw(mark)
    pen.ellipse((4, 4, size - 4, size - 4), outline=ink, width=6)
    pen.ellipse((58, 58, size - 58, size - 58), outline=ink, width=3)
    for number, letter in enumerate("PARISH OFFICE * GRANTED * "):
        angle = number * 2 * math.pi / 26
        spot = Image.new("L", (40, 40), 0)
        ImageDraw.Draw(spot).text(
            (20, 20), letter, fill=255, anchor="mm", font=typeface(26, "DejaVuSans-Bold")
        )
        spot = spot.rotate(-math.degrees(angle))
        radius = size / 2 - 32
        place = (
            round(size / 2 + radius * math.sin(angle)) - 20,
            round(size / 2 - radius * math.cos(angle)) - 20,
        )
        mark.paste(ink, place, spot)
    pen.text((size / 2, size / 2), "47", fill=ink, anchor="mm", font=typeface(64, "DejaVuSans-Bold"))
    return mark


def _box(size: int, ink: tuple[int, int, int]) -> Image.Image:
    mark = Image.new("RGB", (size, size * 4 // 9), "white")
    pen = ImageDraw.Draw(mark)
    pen.rectangle((4, 4, mark.width - 5, mark.height - 5), outline=ink, width=7)
    for number, line in enumerate(("RECEIVED", "17 JUNE")):
        pen.text(
            (mark.width / 2, 46 + number * 54),
            line,
            fill=ink,
            anchor="mm",
            font=typeface(40, "DejaVuSans-Bold"),
        )
    return mark


COLUMNS_PT = (70, 190, 275, 360, 445, 530)
ROWS_PT = (640, 612, 584, 556, 528, 500, 472)
CELLS = {
    (2, 1): "17",
    (2, 3): "64",
    (2, 4): "81",
    (3, 1): "19",
    (3, 2): "25",
    (3, 4): "83",
    (4, 3): "66",
    (4, 4): "92",
    (5, 1): "31",
    (5, 2): "36",
    (5, 3): "48",
}
ROWS = (
    ("East pier", "17", "", "64", "81"),
    ("East pier", "19", "25", "", "83"),
    ("Ferry steps", "", "", "66", "92"),
    ("Boat yard", "31", "36", "48", ""),
)


def _table(name: str, *, is_scan: bool) -> Cousin:
    def write(path: Path) -> None:
        if is_scan:
            _table_scan().save(path, dpi=(150, 150))
        else:
            drawn_pdf(path, lambda canvas: _draw_table(canvas))

    expected = Expected(
        must=("Landings by quay (tonnes)", "East pier", "Ferry steps", "Boat yard"),
        rows=ROWS,
        edit_share=0.06,
    )
    return Cousin(name=name, suffix=".png" if is_scan else ".pdf", write=write, expected=expected)


def _rules() -> Iterator[tuple[float, float, float, float]]:
    """Lines of the grid, left out where a cell spans: two heads over two columns, two stubs over two rows."""
    left, right, top, bottom = COLUMNS_PT[0], COLUMNS_PT[-1], ROWS_PT[0], ROWS_PT[-1]
    for number, y in enumerate(ROWS_PT):
        yield (COLUMNS_PT[1] if number in (1, 3) else left), y, right, y
    for number, x in enumerate(COLUMNS_PT):
        yield x, bottom, x, (ROWS_PT[1] if number in (2, 4) else top)


def _entries() -> Iterator[tuple[float, float, str]]:
    yield COLUMNS_PT[0] + 10, ROWS_PT[1] - 5, "Quay"
    yield COLUMNS_PT[0] + 10, ROWS_PT[3] - 5, "East pier"
    yield COLUMNS_PT[0] + 10, ROWS_PT[5] + 9, "Ferry steps"
    yield COLUMNS_PT[0] + 10, ROWS_PT[6] + 9, "Boat yard"
    yield COLUMNS_PT[1] + 50, ROWS_PT[1] + 9, "Summer"
    yield COLUMNS_PT[3] + 50, ROWS_PT[1] + 9, "Winter"
    for column, month in enumerate(("June", "July", "December", "January"), 1):
        yield COLUMNS_PT[column] + 12, ROWS_PT[2] + 9, month
    for (row, column), value in CELLS.items():
        yield COLUMNS_PT[column] + 30, ROWS_PT[row + 1] + 9, value


def _draw_table(canvas: Canvas) -> None:
    printed(canvas, ["Landings by quay (tonnes)"], top_pt=690, size_pt=16, face="DejaVuSans-Bold")
    printed(canvas, ["An empty cell means that the quay was closed."], top_pt=440, size_pt=11)
    for x, y, entry in _entries():
        printed(canvas, [entry], left_pt=x, top_pt=y, size_pt=11, face="DejaVuSans")
    for x1, y1, x2, y2 in _rules():
        canvas.line(x1, y1, x2, y2)


def _table_scan() -> Image.Image:
    scale = 150 / 72
    page = written_image(["Landings by quay (tonnes)"], size_px=SHEET_PX, font_px=34, left_px=146, top_px=290)
    pen = ImageDraw.Draw(page)
    for x, y, entry in _entries():
        pen.text(
            (x * scale, SHEET_PX[1] - y * scale), entry, anchor="ls", fill=0, font=typeface(23, "DejaVuSans")
        )
    for x1, y1, x2, y2 in _rules():
        pen.line(
            (x1 * scale, SHEET_PX[1] - y1 * scale, x2 * scale, SHEET_PX[1] - y2 * scale), fill=20, width=3
        )
    return page
