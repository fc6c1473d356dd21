"""Scanned pages to measure on, made from samples/: real pages, as many as wanted."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pypdfium2
from PIL import Image, ImageChops
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

PAGE_DPI = 200
"""Letter pages come out at 1700 by 2200 pixels, what doctriage renders by default."""

SAMPLES = Path(__file__).parent.parent / "samples"


def sample_pages() -> tuple[Image.Image, ...]:
    """Six upright printed pages in English, in grey at ``PAGE_DPI``: prose, columns, tables.

    Pages in other languages are left out: doctriage notices and reads them again, the bare engine does not.
    """
    pages = list(_pdf_pages(SAMPLES / "scanned_report.pdf"))
    pages += list(_pdf_pages(SAMPLES / "mixed.pdf"))[2:]
    with Image.open(SAMPLES / "rotated_brochure.jpg") as brochure:
        pages.append(_letter(brochure.transpose(Image.Transpose.ROTATE_90)))
    with Image.open(SAMPLES / "borderless_table.jpg") as table:
        pages.append(_letter(table))
    return tuple(pages)


def write_page_images(folder: Path, page_count: int) -> tuple[Path, ...]:
    """``page_count`` PNG files; every time round, pages are shifted a pixel, so that no two are equal."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = sample_pages()
    paths = []
    for index in range(page_count):
        shift_px = index // len(pages)
        page = ImageChops.offset(pages[index % len(pages)], shift_px)
        path = folder / f"page_{index + 1:03}.png"
        page.save(path, dpi=(PAGE_DPI, PAGE_DPI))
        paths.append(path)
    return tuple(paths)


def write_scanned_pdf(path: Path, page_count: int) -> None:
    """A PDF of page images without a text layer, as an office scanner writes it, titled after its file."""
    scans = []
    for page in sample_pages():
        jpeg = io.BytesIO()
        page.save(jpeg, "JPEG", quality=70)
        scans.append((ImageReader(jpeg), page.width * 72 / PAGE_DPI, page.height * 72 / PAGE_DPI))
    canvas = Canvas(str(path))
    canvas.setTitle(path.stem)
    for index in range(page_count):
        image, width_pt, height_pt = scans[index % len(scans)]
        canvas.setPageSize((width_pt, height_pt))
        canvas.drawImage(image, 0, 0, width_pt, height_pt)
        canvas.showPage()
    canvas.save()


def _letter(image: Image.Image) -> Image.Image:
    return image.convert("L").resize((1700, 2200), Image.Resampling.LANCZOS)


def _pdf_pages(path: Path) -> Iterator[Image.Image]:
    with pypdfium2.PdfDocument(path) as document:
        for page in document:
            yield page.render(scale=PAGE_DPI / 72, grayscale=True).to_pil().convert("L")
