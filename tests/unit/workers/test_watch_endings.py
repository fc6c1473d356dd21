"""A file that ends as its format asks for is told from one that is cut."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from tests.fakes.papers import paper, printed
from workers.watch_endings import ending_of
from workers.watch_files import Ending

SHARES = (0.02, 0.2, 0.5, 0.8, 0.97)


def image_bytes(kind: str, **options: object) -> bytes:
    page = printed(paper(50), 50, (1, 1), "Harbour works, weekly log", size_pt=16).convert("RGB")
    stream = io.BytesIO()
    page.save(stream, kind, **options)
    return stream.getvalue()


def tiff_of_three_pages(compression: str) -> bytes:
    page = Image.effect_noise((200, 300), 60)
    return image_bytes("TIFF", save_all=True, append_images=[page, page], compression=compression)


def pdf_bytes(page_count: int = 3) -> bytes:
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(595, 842))
    for number in range(page_count):
        canvas.drawString(72, 760, f"Sheet {number}")
        canvas.showPage()
    canvas.save()
    return stream.getvalue()


def pdf_for_the_web() -> bytes:
    stream = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf_bytes(20))) as pdf:
        pdf.save(stream, linearize=True)
    return stream.getvalue()


FORMATS: dict[str, Callable[[], bytes]] = {
    "pdf": pdf_bytes,
    "pdf for the web": pdf_for_the_web,
    "png": lambda: image_bytes("PNG"),
    "jpeg": lambda: image_bytes("JPEG"),
    "tiff": lambda: image_bytes("TIFF"),
    "tiff, three pages": lambda: tiff_of_three_pages("raw"),
    "tiff, three pages, lzw": lambda: tiff_of_three_pages("tiff_lzw"),
    "gif": lambda: image_bytes("GIF"),
    "webp": lambda: image_bytes("WEBP"),
    "bmp": lambda: image_bytes("BMP"),
    "jpeg 2000": lambda: image_bytes("JPEG2000"),
    "avif": lambda: image_bytes("AVIF"),
    "heic": lambda: image_bytes("HEIF"),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_is_whole_when_all_of_it_is_there_and_not_before(kind: str, tmp_path: Path) -> None:
    stored, path = FORMATS[kind](), tmp_path / "scan"
    for share in SHARES:
        path.write_bytes(stored[: int(len(stored) * share)])
        assert ending_of(path) is Ending.UNSURE, share
    path.write_bytes(stored)
    assert ending_of(path) is Ending.WHOLE


@pytest.mark.parametrize("kind", FORMATS)
def test_room_that_was_made_before_the_bytes_came_is_no_file(kind: str, tmp_path: Path) -> None:
    stored, path = FORMATS[kind](), tmp_path / "scan"
    path.write_bytes(b"\0" * len(stored))
    assert ending_of(path) is Ending.UNSURE


def test_the_end_of_the_first_part_of_a_pdf_for_the_web_is_not_its_end(tmp_path: Path) -> None:
    stored, path = pdf_for_the_web(), tmp_path / "scan.pdf"
    path.write_bytes(stored[: stored.index(b"%%EOF") + 5])
    assert ending_of(path) is Ending.UNSURE


def test_line_ends_after_the_end_do_not_matter(tmp_path: Path) -> None:
    for name, stored in (("a.pdf", pdf_bytes()), ("b.jpg", image_bytes("JPEG"))):
        (tmp_path / name).write_bytes(stored + b"\r\n\0\0")
        assert ending_of(tmp_path / name) is Ending.WHOLE


def test_what_is_no_document_or_empty_is_not_known_to_be_whole(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no scan", encoding="utf-8")
    (tmp_path / "empty.pdf").touch()
    os.mkfifo(tmp_path / "pipe")
    for name in ("notes.txt", "empty.pdf", "pipe", "."):
        assert ending_of(tmp_path / name) in (Ending.UNSURE, Ending.UNREADABLE), name


def test_what_cannot_be_opened_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "link.pdf").symlink_to("nowhere.pdf")
    assert ending_of(tmp_path / "link.pdf") is Ending.UNREADABLE
    assert ending_of(tmp_path / "gone.pdf") is Ending.UNREADABLE
