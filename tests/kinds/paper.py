"""Paper to write on: pages of letters as images and as PDFs, and PDF objects that reportlab does not write.

Coordinates of PDFs are points with the origin bottom left, of images pixels with the origin top left.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
import pikepdf
from pikepdf import Array, Dictionary, Name, Pdf
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

A4_PT = (595.0, 842.0)
SCAN_DPI = 150

Draw = Callable[[Canvas], None]


@functools.cache
def font_path(name: str) -> Path:
    """A DejaVu face; they come with matplotlib, so that the pages are the same on every machine."""
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"


@functools.cache
def typeface(size_px: int, name: str = "DejaVuSerif") -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(font_path(name)), size_px)


@functools.cache
def embedded(name: str) -> str:
    """The face under the name that a canvas knows it by."""
    pdfmetrics.registerFont(TTFont(name, str(font_path(name))))
    return name


def written_image(
    lines: Sequence[str],
    *,
    size_px: tuple[int, int] = (1240, 900),
    font_px: int = 28,
    left_px: int = 130,
    top_px: int = 120,
    leading_px: int | None = None,
    ink: int = 0,
    paper: int = 255,
) -> Image.Image:
    """A grey page with ``lines`` printed on it, as a scanner at 150 dpi would give it."""
    image = Image.new("L", size_px, paper)
    write_lines(
        image,
        lines,
        font_px=font_px,
        left_px=left_px,
        top_px=top_px,
        leading_px=leading_px or font_px * 17 // 10,
        ink=ink,
    )
    return image


def write_lines(
    image: Image.Image,
    lines: Sequence[str],
    *,
    font_px: int,
    left_px: int,
    top_px: int,
    leading_px: int,
    ink: int | tuple[int, int, int] = 0,
    face: str = "DejaVuSerif",
) -> None:
    pen = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        pen.text((left_px, top_px + number * leading_px), line, fill=ink, font=typeface(font_px, face))


def drawn_pdf(path: Path, *draws: Draw, size_pt: tuple[float, float] = A4_PT) -> None:
    """A PDF with a page for each of ``draws``."""
    canvas = Canvas(str(path), pagesize=size_pt, invariant=True)
    for draw in draws:
        draw(canvas)
        canvas.showPage()
    canvas.save()


def printed(
    canvas: Canvas,
    lines: Sequence[str],
    *,
    left_pt: float = 70,
    top_pt: float = 760,
    size_pt: float = 13,
    leading_pt: float = 24,
    face: str = "DejaVuSerif",
) -> None:
    """``lines`` in an embedded face with a ToUnicode map, or in one of the fourteen that every reader has."""
    canvas.setFont(embedded(face) if face.startswith("DejaVu") else face, size_pt)
    for number, line in enumerate(lines):
        canvas.drawString(left_pt, top_pt - number * leading_pt, line)


def pasted(
    canvas: Canvas, image: Image.Image, *, box_pt: tuple[float, float, float, float] | None = None
) -> None:
    """The image over the whole page, or over ``box_pt`` (left, bottom, width, height)."""
    left_pt, bottom_pt, width_pt, height_pt = box_pt or (0, 0, *canvas._pagesize)
    canvas.drawImage(ImageReader(image), left_pt, bottom_pt, width_pt, height_pt)


def altered(path: Path, change: Callable[[Pdf], None]) -> None:
    """The PDF at ``path`` with its objects changed in place."""
    with Pdf.open(path, allow_overwriting_input=True) as pdf:
        change(pdf)
        pdf.save(path, deterministic_id=True)


def raw_pdf(
    path: Path,
    content: bytes,
    *,
    resources: Dictionary | None = None,
    page: dict[str, object] | None = None,
    change: Callable[[Pdf], None] | None = None,
) -> None:
    """One A4 page from a content stream, with Helvetica as ``/F``; ``change`` may do the rest."""
    with Pdf.new() as pdf:
        all_resources = resources or Dictionary()
        all_resources["/Font"] = all_resources.get("/Font", Dictionary())
        all_resources["/Font"]["/F"] = helvetica()
        entries = {
            "/Type": Name.Page,
            "/MediaBox": Array([0, 0, 595, 842]),
            "/Resources": all_resources,
            "/Contents": pdf.make_stream(content),
            **(page or {}),
        }
        pdf.pages.append(pikepdf.Page(pdf.make_indirect(Dictionary(entries))))
        if change is not None:
            change(pdf)
        pdf.save(path, deterministic_id=True)


def helvetica() -> Dictionary:
    return Dictionary(
        Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica, Encoding=Name.WinAnsiEncoding
    )


def shown(
    lines: Sequence[str],
    *,
    left_pt: float = 70,
    top_pt: float = 760,
    size_pt: float = 14,
    leading_pt: float = 26,
) -> bytes:
    """Content stream that shows ``lines`` in ``/F``."""
    parts = [f"BT /F {size_pt} Tf"]
    for number, line in enumerate(lines):
        safe = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        parts.append(f"1 0 0 1 {left_pt} {top_pt - number * leading_pt} Tm ({safe}) Tj")
    return " ".join([*parts, "ET\n"]).encode("cp1252")


def encoded(image: Image.Image, suffix: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, suffix, **options)
    return buffer.getvalue()
