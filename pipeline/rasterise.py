"""Rasterise: pages to pixels, bounded in pixels, seconds and memory. One bad page costs only itself.

PDF pages are drawn by poppler through pdf2image, a batch of pages a call; image files are decoded by
``pipeline.images``. A page that poppler cannot draw, finds damaged, leaves empty, or draws in another size than
the PDF engine displays it, is drawn by the PDF engine too, so that text layer and pixels always share one frame
and damage is not taken for a blank page. A page that poppler draws too slowly has failed: the PDF engine cannot be
stopped.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pdf2image import convert_from_path, pdfinfo_from_path
from pdf2image.exceptions import PDFPageCountError, PDFPopplerTimeoutError, PDFSyntaxError
from PIL import Image

from models.document import MediaType
from models.errors import EngineUnavailable, PageFailed, PageNotRendered
from pipeline.images import read_page
from pipeline.ports import PageRaster, PageShape, PdfEngine
from pipeline.resolution import POINTS_PER_INCH, PageResolution, page_resolution, pixel_size
from pipeline.settings import RasteriseSettings

BOUNDED_POPPLER = Path(__file__).parent / "bounded_poppler"
# pdf2image's annotations are narrower than what it takes (fractions of a dpi, seconds, and no password).
_convert: Callable[..., list[Image.Image]] = convert_from_path
_pdfinfo: Callable[..., dict[str, object]] = pdfinfo_from_path

SIZE_TOLERANCE_PX = 2
SIZE_TOLERANCE_SHARE = 0.01
"""Poppler rounds each side up to a whole pixel; a page further off than this was drawn in another box."""

PAPER_GREY = 245
CLEARLY_MORE_INK = 1.3
"""The two draw the same page with some percent more or less ink."""

_DAMAGED = "this page is damaged and cannot be drawn; export the PDF anew and submit it again"
_TOO_SLOW = (
    "this page takes longer than {timeout_s:g} s to draw; print the PDF to a new one and submit that, "
    "or raise DOCTRIAGE_RASTERISE__TIMEOUT_S"
)
_POPPLER_FAILED = (PDFPageCountError, OSError, ValueError, IndexError, SyntaxError)
"""What pdf2image, and reading the pixels it got, raise where poppler fails, is killed or stops half way."""
_IMAGE_FAULT = re.compile(r"Syntax Error.*(?:CCITTFax|JBIG2|JPX|jpeg|segment)")
"""Poppler's words for a fault in the data of an image."""


@dataclass(frozen=True, slots=True)
class PlannedPage:
    """A page that can be drawn, and how."""

    page_number: int
    shape: PageShape
    resolution: PageResolution

    @property
    def size_px(self) -> tuple[int, int]:
        return pixel_size(self.shape, self.resolution.render_dpi)

    @property
    def pixels(self) -> int:
        return self.size_px[0] * self.size_px[1]

    def raster(self, image: Image.Image, *, is_damaged: bool = False) -> PageRaster:
        return PageRaster(
            page_number=self.page_number,
            image=image,
            dpi=max(round(self.resolution.ocr_dpi, 2), 1.0),
            px_per_pt=self.resolution.render_dpi / POINTS_PER_INCH,
            is_damaged=is_damaged,
        )


@dataclass(frozen=True, slots=True)
class _PdfSource:
    path: Path
    pdf: PdfEngine
    settings: RasteriseSettings
    password: str | None
    poppler_password: str | None


def rasterise_pages(
    path: Path,
    media_type: MediaType,
    page_numbers: Sequence[int],
    *,
    pdf: PdfEngine,
    settings: RasteriseSettings,
    password: str | None,
) -> Iterator[tuple[int, PageRaster | PageFailed]]:
    """Each page asked for, in that order, or why it has no pixels. One batch of pages is held at a time.

    ``path`` has passed intake. Raises ``EngineUnavailable`` without poppler, and a ``DocumentRejected`` where
    the file is no longer what intake saw.
    """
    if media_type is MediaType.PDF:
        yield from _pdf_pages(path.absolute(), page_numbers, pdf, settings, password)
        return
    for page_number in page_numbers:
        yield page_number, _image_page(path, media_type, page_number, settings.max_page_pixels)


def _image_page(
    path: Path, media_type: MediaType, page_number: int, max_page_pixels: int
) -> PageRaster | PageFailed:
    try:
        return read_page(path, media_type, page_number, max_page_pixels=max_page_pixels)
    except PageFailed as failure:
        return failure


def _pdf_pages(
    path: Path, page_numbers: Sequence[int], pdf: PdfEngine, settings: RasteriseSettings, password: str | None
) -> Iterator[tuple[int, PageRaster | PageFailed]]:
    """``path`` is absolute, so that poppler never takes a file's name for an option."""
    if shutil.which("pdftoppm") is None or shutil.which("pdfinfo") is None:
        raise EngineUnavailable("poppler is missing; install the package poppler-utils")
    shapes = pdf.page_shapes(path, page_numbers, password)
    poppler_password = _password_for_poppler(path, password, settings.timeout_s)
    source = _PdfSource(path, pdf, settings, password, poppler_password)
    batch: list[PlannedPage] = []
    for page_number, shape in zip(page_numbers, shapes, strict=True):
        if shape is None:
            yield from _drawn(batch, source)
            batch = []
            yield (
                page_number,
                PageNotRendered(_DAMAGED),
            )
            continue
        page = PlannedPage(page_number, shape, _resolution(shape, settings))
        if batch and not _fits(batch, page, settings):
            yield from _drawn(batch, source)
            batch = []
        batch.append(page)
    yield from _drawn(batch, source)


def _resolution(shape: PageShape, settings: RasteriseSettings) -> PageResolution:
    return page_resolution(shape, dpi=settings.dpi, max_page_pixels=settings.max_page_pixels)


def _fits(batch: Sequence[PlannedPage], page: PlannedPage, settings: RasteriseSettings) -> bool:
    """A call draws consecutive pages at one dpi, and together no more pixels than one page may have."""
    return (
        len(batch) < settings.pages_per_call
        and page.page_number == batch[-1].page_number + 1
        and page.resolution.render_dpi == batch[-1].resolution.render_dpi
        and sum(planned.pixels for planned in batch) + page.pixels <= settings.max_page_pixels
    )


def _drawn(batch: Sequence[PlannedPage], source: _PdfSource) -> Iterator[tuple[int, PageRaster | PageFailed]]:
    """A batch that fails as a whole, or that poppler complains of, is drawn again page by page."""
    drawing = _by_poppler(batch, source) if batch else _Drawing()
    if len(batch) > 1 and not (drawing.images and drawing.complaint is None):
        for page in batch:
            yield from _drawn((page,), source)
        return
    for page, image in zip(batch, drawing.images or (None,) * len(batch), strict=True):
        yield page.page_number, _judged(page, image, drawing, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    """What poppler made of a batch: as many images as pages, decoded, or none where it failed on any of them;
    and the faults that it found in the file, None for a sound one."""

    images: Sequence[Image.Image] = ()
    complaint: str | None = None
    is_too_slow: bool = False


def _by_poppler(batch: Sequence[PlannedPage], source: _PdfSource) -> _Drawing:
    """A single page is drawn in spite of its faults."""
    try:
        return _Drawing(images=_images(batch, source, strict=True))
    except PDFPopplerTimeoutError:
        return _Drawing(is_too_slow=True)
    except PDFSyntaxError as error:
        complaint = str(error)
    try:
        return _Drawing(
            images=_images(batch, source, strict=False) if len(batch) == 1 else (), complaint=complaint
        )
    except PDFPopplerTimeoutError:
        return _Drawing(complaint=complaint, is_too_slow=True)


def _images(batch: Sequence[PlannedPage], source: _PdfSource, *, strict: bool) -> Sequence[Image.Image]:
    """Raises PDFSyntaxError where ``strict`` and poppler reports a fault, PDFPopplerTimeoutError where it is too
    slow."""
    try:
        images = _convert(
            source.path,
            dpi=batch[0].resolution.render_dpi,
            first_page=batch[0].page_number,
            last_page=batch[-1].page_number,
            use_cropbox=True,
            strict=strict,
            userpw=source.poppler_password,
            ownerpw=source.poppler_password,
            timeout=source.settings.timeout_s,
            poppler_path=str(BOUNDED_POPPLER),
        )
        for image in images:
            image.load()
    except _POPPLER_FAILED:
        return ()
    return images if len(images) == len(batch) else ()


def _has_size(image: Image.Image, size_px: tuple[int, int]) -> bool:
    return all(
        abs(got - wanted) <= max(SIZE_TOLERANCE_PX, SIZE_TOLERANCE_SHARE * wanted)
        for got, wanted in zip(image.size, size_px, strict=True)
    )


def _judged(
    page: PlannedPage, image: Image.Image | None, drawing: _Drawing, source: _PdfSource
) -> PageRaster | PageFailed:
    """Poppler's drawing, where it is sound and shows something; also of a damaged scan, whose missing rows poppler
    leaves white and the PDF engine paints black. All others need a second opinion."""
    if drawing.is_too_slow:
        return PageNotRendered(_TOO_SLOW.format(timeout_s=source.settings.timeout_s))
    drawn = image if image is not None and _has_size(image, page.size_px) else None
    shows_ink = drawn is not None and _ink_px(drawn) > 0
    is_damaged = _is_damaged_scan(page, source, drawing.complaint, shows_ink=shows_ink)
    if drawn is not None and (is_damaged or (shows_ink and drawing.complaint is None)):
        return page.raster(drawn, is_damaged=is_damaged)
    other = _second_opinion(page, drawn, source, is_sound=drawing.complaint is None)
    return replace(other, is_damaged=is_damaged) if isinstance(other, PageRaster) else other


def _is_damaged_scan(
    page: PlannedPage, source: _PdfSource, complaint: str | None, *, shows_ink: bool
) -> bool:
    damage = source.pdf.scan_damage(
        source.path,
        page.page_number,
        password=source.password,
        is_suspect=complaint is not None or not shows_ink,
    )
    has_image_fault = complaint is not None and _IMAGE_FAULT.search(complaint) is not None
    return damage is not None and (damage or has_image_fault)


def _second_opinion(
    page: PlannedPage, drawn: Image.Image | None, source: _PdfSource, *, is_sound: bool
) -> PageRaster | PageFailed:
    """The PDF engine's drawing, where poppler has none or one that shows clearly less. A damaged page of which
    neither shows anything has failed: it is not known to be blank."""
    try:
        other = source.pdf.render(
            source.path, page.page_number, dpi=page.resolution.render_dpi, password=source.password
        )
    except PageFailed as failure:
        return page.raster(drawn) if drawn is not None and _ink_px(drawn) else failure
    best = other if drawn is None or _ink_px(other) > CLEARLY_MORE_INK * _ink_px(drawn) else drawn
    if not is_sound and not _ink_px(best):
        return PageNotRendered(_DAMAGED)
    return page.raster(best)


def _ink_px(image: Image.Image) -> int:
    """Pixels that are not paper."""
    return sum(image.convert("L").histogram()[:PAPER_GREY])


def _password_for_poppler(path: Path, password: str | None, timeout_s: float) -> str | None:
    """The password as poppler needs it: none where the document opens without, and in the document's encoding
    (UTF-8 since PDF 2.0, before that Latin-1, which travels as the surrogates that stand for its bytes)."""
    if password is None:
        return None
    candidates = [None, password]
    if not password.isascii():
        candidates.append(os.fsdecode(password.encode("latin-1", errors="replace")))
    for candidate in candidates:
        try:
            _pdfinfo(
                path,
                userpw=candidate,
                ownerpw=candidate,
                timeout=timeout_s,
                poppler_path=str(BOUNDED_POPPLER),
            )
        except (PDFPageCountError, PDFPopplerTimeoutError):
            continue
        return candidate
    return password
