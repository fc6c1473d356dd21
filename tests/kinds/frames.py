"""Pages whose displayed frame is not the plain one: turned, cropped, or in large units."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pikepdf import Array, Name, Page, Pdf
from reportlab.pdfgen.canvas import Canvas

from tests.kinds.judging import Cousin, Expected
from tests.kinds.paper import altered, drawn_pdf, pasted, printed, written_image

DIARY = (
    "Orchard diary, second leaf",
    "On Monday the pear trees along the wall were pruned",
    "and the dead wood was burned behind the barn.",
    "A hard frost kept everyone indoors until noon.",
    "Row 1: eleven trees, two of them grafted in March.",
    "Row 2: nine trees, one lost to the north wind.",
    "Row 3: fourteen trees, all in good health.",
)
NOTICE = (
    "Notice of the chess circle",
    "The hall is open to members from seven in the evening.",
    "Boards and clocks are returned to the green cupboard.",
    "Last winter we counted 218 games in one season.",
)
OUTSIDE = ("BLEED MARK LEFT", "Plate magenta 4 of 4", "Continued from an earlier sheet")

MediaBox = tuple[float, float, float, float]


def turned_pages() -> Iterator[Cousin]:
    """Upright for a reader who honours /Rotate, whatever way that is written down."""
    for rotate in (90, 180, 270, -90, 450, -270):
        yield _turned(f"rotate_{rotate}".replace("-", "minus_"), rotate)
    yield _turned("rotate_inherited", 90, inherits=True)
    yield _turned("rotate_offset_media_box", 270, media_box=(-120, 300, 475, 1142))
    yield _turned("rotate_portrait_to_landscape", 90, media_box=(0, 0, 595, 842))
    yield _turned("rotate_over_a_scan", 90, is_scan=True)
    for angle in (90, 180, 270):
        yield _lying_text(angle)


def cropped_pages() -> Iterator[Cousin]:
    """Only what the crop box (within the media box) shows is on the page."""
    yield _cropped("crop_smaller", media_box=(0, 0, 700, 840), crop_box=(100, 100, 600, 720))
    yield _cropped("crop_offset_origin", media_box=(-350, -420, 350, 420), crop_box=(-250, -320, 250, 300))
    yield _cropped("crop_swapped_corners", media_box=(0, 0, 700, 840), crop_box=(600, 720, 100, 100))
    yield _cropped("crop_inherited", media_box=(0, 0, 700, 840), crop_box=(100, 100, 600, 720), inherits=True)
    yield _cropped("crop_turned", media_box=(0, 0, 700, 840), crop_box=(100, 100, 600, 720), rotate=90)
    yield _cropped("crop_larger_than_media", media_box=(100, 100, 600, 720), crop_box=(0, 0, 700, 840))
    yield _cropped("text_outside_the_media_box", media_box=(100, 100, 600, 720), crop_box=None)
    yield _cropped_scan()


def large_units() -> Iterator[Cousin]:
    """The media box counts user units of 1/72 inch times UserUnit."""
    for unit in (2, 5, 10):
        yield _scan_in_units(unit)
        yield _print_in_units(unit)
    yield _print_in_units(0.25)


def _turned(
    name: str,
    rotate: int,
    *,
    media_box: MediaBox = (0, 0, 842, 595),
    inherits: bool = False,
    is_scan: bool = False,
) -> Cousin:
    def write(path: Path) -> None:
        left, bottom, right, top = media_box
        size_pt = (top - bottom, right - left) if rotate % 180 else (right - left, top - bottom)

        def draw(canvas: Canvas) -> None:
            canvas.transform(*_displayed_to_user(rotate, media_box))
            if is_scan:
                pasted(canvas, _diary_scan(size_pt), box_pt=(0, 0, *size_pt))
            else:
                printed(canvas, DIARY, top_pt=size_pt[1] - 80)

        def turn(pdf: Pdf) -> None:
            page = pdf.pages[0].obj
            page["/MediaBox"] = Array(media_box)
            del page["/Rotate"]
            (page["/Parent"] if inherits else page)["/Rotate"] = rotate

        drawn_pdf(path, draw)
        altered(path, turn)

    expected = Expected(
        must=DIARY,
        order=DIARY[:1] + DIARY[3:4],
        rotation_deg=0,
        has_wide_lines=True,
        edit_share=0.05 * is_scan,
    )
    return Cousin(name=name, suffix=".pdf", write=write, expected=expected)


def _displayed_to_user(rotate: int, media_box: MediaBox) -> tuple[float, float, float, float, float, float]:
    left, bottom, right, top = media_box
    match rotate % 360:
        case 90:
            return 0, 1, -1, 0, right, bottom
        case 180:
            return -1, 0, 0, -1, right, top
        case 270:
            return 0, -1, 1, 0, left, top
        case _:
            return 1, 0, 0, 1, left, bottom


def _diary_scan(size_pt: tuple[float, float]):
    width_px, height_px = (round(side * 150 / 72) for side in size_pt)
    return written_image(DIARY, size_px=(width_px, height_px))


def _lying_text(angle: int) -> Cousin:
    """No /Rotate: the words themselves lie on their side, so the page is to be turned for reading."""

    def draw(canvas: Canvas) -> None:
        width_pt, height_pt = canvas._pagesize
        canvas.transform(*_displayed_to_user(angle, (0, 0, width_pt, height_pt)))
        printed(canvas, DIARY, top_pt=(width_pt if angle % 180 else height_pt) - 80)

    return Cousin(
        name=f"lying_text_{angle}",
        suffix=".pdf",
        write=lambda path: drawn_pdf(path, draw),
        expected=Expected(must=DIARY, order=DIARY[:1] + DIARY[3:4], rotation_deg=angle, edit_share=0.04),
    )


def _cropped(
    name: str,
    *,
    media_box: MediaBox,
    crop_box: MediaBox | None,
    rotate: int = 0,
    inherits: bool = False,
) -> Cousin:
    seen = _common_part(media_box, crop_box)

    def write(path: Path) -> None:
        def draw(canvas: Canvas) -> None:
            canvas.saveState()
            canvas.transform(*_displayed_to_user(rotate, seen))
            printed(canvas, NOTICE, left_pt=45, top_pt=300)
            canvas.restoreState()
            _write_around(canvas, seen)

        def set_boxes(pdf: Pdf) -> None:
            _set_boxes(pdf.pages[0], media_box, crop_box, rotate=rotate, inherits=inherits)

        drawn_pdf(path, draw)
        altered(path, set_boxes)

    return Cousin(
        name=name,
        suffix=".pdf",
        write=write,
        expected=Expected(must=NOTICE, must_not=OUTSIDE, order=NOTICE, has_wide_lines=True),
    )


def _common_part(media_box: MediaBox, crop_box: MediaBox | None) -> MediaBox:
    if crop_box is None:
        return media_box
    crop_left, crop_right = sorted(crop_box[::2])
    crop_bottom, crop_top = sorted(crop_box[1::2])
    left, bottom, right, top = media_box
    return max(left, crop_left), max(bottom, crop_bottom), min(right, crop_right), min(top, crop_top)


def _write_around(canvas: Canvas, seen: MediaBox) -> None:
    left, bottom, right, top = seen
    printed(canvas, OUTSIDE[:1], left_pt=left + 60, top_pt=top + 30, size_pt=9)
    printed(canvas, OUTSIDE[1:2], left_pt=left + 60, top_pt=bottom - 25, size_pt=9)
    canvas.saveState()
    canvas.translate(right + 20, bottom + 100)
    canvas.rotate(90)
    printed(canvas, OUTSIDE[2:], left_pt=0, top_pt=0, size_pt=9)
    canvas.restoreState()


def _set_boxes(
    page: Page, media_box: MediaBox, crop_box: MediaBox | None, *, rotate: int, inherits: bool
) -> None:
    page.obj["/MediaBox"] = Array(media_box)
    page.obj["/Rotate"] = rotate
    if crop_box is not None:
        holder = page.obj["/Parent"] if inherits else page.obj
        holder["/CropBox"] = Array(crop_box)


def _cropped_scan() -> Cousin:
    """The scan shows two pages of a book, the crop box only the left one."""

    def write(path: Path) -> None:
        scan = written_image(NOTICE, size_px=(1750, 1240))
        scan.paste(written_image(DIARY, size_px=(875, 1240), left_px=60), (1000, 0))
        drawn_pdf(path, lambda canvas: pasted(canvas, scan), size_pt=(842, 595))
        altered(path, lambda pdf: pdf.pages[0].obj.__setitem__(Name.CropBox, Array([0, 0, 478, 595])))

    return Cousin(
        name="crop_over_a_scan",
        suffix=".pdf",
        write=write,
        expected=Expected(must=NOTICE, must_not=("Orchard", "Row 2"), edit_share=0.08),
    )


def _scan_in_units(unit: float) -> Cousin:
    def write(path: Path) -> None:
        scan = written_image(DIARY, size_px=(1240, 1754))
        drawn_pdf(path, lambda canvas: pasted(canvas, scan), size_pt=(595 / unit, 842 / unit))
        altered(path, lambda pdf: pdf.pages[0].obj.__setitem__(Name.UserUnit, unit))

    return Cousin(
        name=f"user_unit_{unit}_scan",
        suffix=".pdf",
        write=write,
        expected=Expected(must=DIARY, edit_share=0.08),
    )


def _print_in_units(unit: float) -> Cousin:
    def write(path: Path) -> None:
        def draw(canvas: Canvas) -> None:
            canvas.scale(1 / unit, 1 / unit)
            printed(canvas, DIARY)

        drawn_pdf(path, draw, size_pt=(595 / unit, 842 / unit))
        altered(path, lambda pdf: pdf.pages[0].obj.__setitem__(Name.UserUnit, unit))

    return Cousin(
        name=f"user_unit_{unit}_print".replace("0.25", "a_quarter"),
        suffix=".pdf",
        write=write,
        expected=Expected(must=DIARY, order=DIARY, has_wide_lines=True),
    )
