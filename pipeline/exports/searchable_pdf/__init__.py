"""Searchable PDF: the original's pages as they are, with the words that were read as invisible text over the print.

``placement`` says where a word runs, ``text_layer`` writes it into a page, ``invisible_font`` is what it is written in,
``original_pages`` opens a PDF and ``image_pages`` makes pages of pictures. This package is the only importer of pypdf.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, Final

import structlog
from pypdf import PageObject, PdfWriter

from models.document import MediaType
from models.errors import PageFailed
from pipeline.exports.document import Json, Pages
from pipeline.exports.original import Original
from pipeline.exports.page_parts import failure_note, has_text_layer, is_failed
from pipeline.exports.searchable_pdf.image_pages import (
    Picture,
    add_note_page,
    add_picture_page,
    drawn_picture,
    stored_jpeg,
)
from pipeline.exports.searchable_pdf.invisible_font import InvisibleFont
from pipeline.exports.searchable_pdf.original_pages import PDF_HEADER, NotParsed, copied_original
from pipeline.exports.searchable_pdf.placement import placed_texts
from pipeline.exports.searchable_pdf.replay import replayable
from pipeline.exports.searchable_pdf.text_layer import add_text, page_frame

LOSSLESS: Final = frozenset({MediaType.PNG, MediaType.TIFF, MediaType.BMP, MediaType.GIF})
"""Formats whose pixels are kept; those of the others were never exact."""

KEPT_IN_MEMORY_BYTES: Final = 2**24

log = structlog.get_logger()


def write_searchable_pdf(stream: BinaryIO, header: Json, pages: Pages, original: Original) -> None:
    """A page that was read by its own text layer stays as it is, and so do all bytes where no page gets text. A PDF
    that cannot be parsed has its pages drawn, and so has every image; a page that cannot be drawn is a note that says
    so. The whole PDF is in memory, compressed as it is. The same input gives the same bytes. Raises
    ``DocumentEncrypted``, and what ``rasterise_pages`` raises where pages are drawn."""
    with replayable(pages) as replay, tempfile.SpooledTemporaryFile(KEPT_IN_MEMORY_BYTES) as written:
        if not (original.media_type is MediaType.PDF and _is_layered(written, header, replay(), original)):
            _write_drawn(written, replay, original)
        written.seek(0)
        shutil.copyfileobj(written, stream)


def _is_layered(stream: IO[bytes], header: Json, pages: Pages, original: Original) -> bool:
    """Write the original with its text. False, and nothing written, where it cannot be parsed."""
    try:
        _write_layered(stream, header, pages, original)
    except NotParsed as error:
        log.info("original_not_parsed", document_id=header["document_id"], reason=str(error))
        stream.seek(0)
        stream.truncate()
        return False
    return True


def _write_layered(stream: IO[bytes], header: Json, pages: Pages, original: Original) -> None:
    """The original's own bytes where there is nothing to add. Raises ``NotParsed``."""
    with copied_original(original) as copied:
        writer = copied.writer
        if len(writer.pages) != header["page_count"]:
            raise NotParsed(f"it has {len(writer.pages)} pages here, and {header['page_count']} were read")
        font = InvisibleFont(writer)
        seen: set[int] = set()
        for page, target in zip(pages, writer.pages, strict=True):
            reference = target.indirect_reference
            is_shared = reference is not None and reference.idnum in seen
            if reference is not None:
                seen.add(reference.idnum)
            if not (is_failed(page) or has_text_layer(page) or is_shared):
                _add_words(target, page, writer, font)
        if font.is_used or copied.was_encrypted:
            _finish(writer, font, stream)
            return
    with original.path.open("rb") as stored:
        shutil.copyfileobj(stored, stream)


def _finish(writer: PdfWriter, font: InvisibleFont, stream: IO[bytes]) -> None:
    if font.is_used:
        font.write()
    writer.write(stream)


def _add_words(target: PageObject, page: Json, writer: PdfWriter, font: InvisibleFont) -> None:
    frame = page_frame(target, page["width_px"], page["height_px"])
    if frame is None:
        raise NotParsed(f"page {page['page_number']} has another shape here than it was read in")
    add_text(target, frame, placed_texts(page), writer=writer, font=font)


def _write_drawn(stream: IO[bytes], replay: Callable[[], Iterator[Json]], original: Original) -> None:
    writer = PdfWriter()
    writer.pdf_header = PDF_HEADER
    font = InvisibleFont(writer)
    numbers = [page["page_number"] for page in replay()]
    for page, picture in zip(replay(), _pictures(original, numbers), strict=True):
        if picture is None or is_failed(page):
            add_note_page(writer, _why_not_shown(page))
        else:
            _add_words(add_picture_page(writer, picture, page), page, writer, font)
    _finish(writer, font, stream)


def _pictures(original: Original, page_numbers: list[int]) -> Iterator[Picture | None]:
    """None for a page that cannot be drawn."""
    if original.media_type is MediaType.JPEG:
        picture = stored_jpeg(original.path.read_bytes())
        if picture is not None:
            yield picture
            return
    for drawn in original.drawn_pages(page_numbers):
        if isinstance(drawn, PageFailed):
            yield None
        else:
            yield drawn_picture(drawn, is_lossless=original.media_type in LOSSLESS)


def _why_not_shown(page: Json) -> str:
    if is_failed(page):
        return failure_note(page)
    return f"Page {page['page_number']} could not be drawn again."
