"""How small may a page be? ``python -m benchmarks.budgets --corpus DIR… --out DIR``

Reads every labelled page at its own size; then those that an OCR engine reads well, without their margins shrunk to
the very pixels that would be sent, and enlarged to their own size again, so that the engine's liking for large type has
no say: what differs is what the pixels still hold. Tables, plots and ``budgets.json`` say what is lost at which size,
and what budgets that follow the text's height save. ``docs/budgets.md`` shows the result.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image
from rich.console import Console
from rich.progress import track

from benchmarks.budget_figures import BUDGET, FIXED, SIZES, MeasuredPage, Reading, tier_of
from benchmarks.budget_plots import draw_adaptive, draw_legibility
from benchmarks.budget_tables import print_tables
from models.errors import DoctriageError, EngineError
from models.geometry import Box
from models.page import ReadBy
from models.text import Line
from pipeline.engines.tesseract import TesseractEngine, TesseractOptions
from pipeline.fit import fit_page, page_fit
from pipeline.intake import inspect_source
from pipeline.legibility import text_height_px
from pipeline.margins import content_box, trimmed
from pipeline.page_pipeline import Engines
from pipeline.ports import OcrEngine, PageRaster
from pipeline.rasterise import rasterise_pages
from pipeline.read import read_page
from pipeline.reading_order import ordered_blocks
from pipeline.settings import Settings
from pipeline.text_metrics import compare_text
from pipeline.upright import turned
from workers.bootstrap import build_engines
from workers.labelled import LabelledPage, read_corpora

READ_WELL: Final = 0.8
"""The least share of a page's true words that the engine finds at the page's own size: where it is blind anyway,
it cannot say what shrinking costs."""

TESSERACT_CODES: Final = {
    "ar": "ara",
    "de": "deu",
    "en": "eng",
    "es": "spa",
    "fr": "fra",
    "it": "ita",
    "ja": "jpn",
    "ko": "kor",
    "la": "lat",
    "ru": "rus",
    "zh": "chi_sim",
}
TIMEOUT_S: Final = 600.0
ONE_PASS: Final = TesseractOptions(
    minute_letter_px=0,
    tiny_print_confidence=0,
    small_print_confidence=0,
    missed_letters=10**9,
    labels_share=-1,
    few_letters=0,
)
"""Tesseract without what doctriage adds: no second look at small print, which would blur the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSize:
    """A page read at its own size, and how it was turned for that."""

    page: MeasuredPage
    rotation_deg: int
    skew_deg: float
    is_read_well: bool


def read_at_own_size(label: LabelledPage, engine: str) -> OwnSize | None:
    """None for what is never sent: a file that cannot be read, and a blank page."""
    engines, languages = _engines(engine), _languages(label)
    settings = Settings().read.model_copy(update={"languages": languages})
    try:
        raster = _raster(label, engines)
        reading, upright = read_page(raster, None, readers=engines.readers, settings=settings)
    except DoctriageError:
        return None
    if reading.read_by is ReadBy.NOTHING:
        return None
    lines = tuple(line for block in reading.blocks for line in block.lines)
    image = upright.raster.image
    box = content_box(raster.image, upright)
    own = _compared(label, lines, scale=1.0)
    page = MeasuredPage(
        page_id=label.row.id,
        kind=label.row.primary_class,
        source=label.row.source_repo or "",
        needs_vlm=label.row.needs_vlm,
        width_px=image.width,
        height_px=image.height,
        content_width_px=int(box.width),
        content_height_px=int(box.height),
        text_height_px=text_height_px(lines),
        own=own,
    )
    return OwnSize(
        page=page,
        rotation_deg=upright.rotation_deg,
        skew_deg=upright.skew_deg,
        is_read_well=own is not None and bool(lines) and own.found >= READ_WELL,
    )


def read_at_each_size(label: LabelledPage, own: OwnSize, engine: str) -> MeasuredPage:
    """``own.page`` with a reading for each of ``SIZES``, and as a whole; without any where the engine fails on one."""
    engines = _engines(engine)
    raster = _raster(label, engines)
    upright = turned(raster, rotation_deg=own.rotation_deg, skew_deg=own.skew_deg)
    box, whole = content_box(raster.image, upright), Box(0, 0, *upright.raster.image.size)
    read = partial(_read_shrunk, label, upright.raster, ocr=engines.readers.ocr)
    try:
        readings = {tokens: read(box, tokens) or own.page.own for tokens in SIZES}
        fixed = read(whole, FIXED.size) or own.page.own
    except EngineError:
        return own.page
    return replace(
        own.page, at={tokens: reading for tokens, reading in readings.items() if reading}, fixed=fixed
    )


def _read_shrunk(
    label: LabelledPage, raster: PageRaster, box: Box, tokens: int, ocr: OcrEngine
) -> Reading | None:
    """What is in ``box``, in its place on white paper of the page's own size; None where the whole page is sent at its
    own size, or in strips."""
    tier, content = tier_of(tokens), trimmed(raster.image, box)
    strip, *more = page_fit(content.width, content.height, BUDGET, tier)
    if more or (strip.scale >= 1 and content.size == raster.image.size):
        return None
    (sent,) = fit_page(content, BUDGET, tier)
    with Image.open(BytesIO(sent.encoded)) as shown:
        enlarged = shown.crop((0, 0, *strip.content_size_px)).resize(content.size, Image.Resampling.BICUBIC)
    page = Image.new(enlarged.mode, raster.image.size, "white")
    page.paste(enlarged, (int(box.left), int(box.top)))
    lines = ocr.read(page, dpi=raster.dpi, languages=_languages(label))
    blocks = ordered_blocks(lines, page.width, page.height)
    ordered = tuple(line for block in blocks for line in block.lines)
    return _compared(label, ordered, scale=min(strip.scale, 1.0))


def _compared(label: LabelledPage, lines: Sequence[Line], *, scale: float) -> Reading | None:
    """None for a page without known text."""
    truth = label.truth_text.read_text(encoding="utf-8").strip() if label.truth_text else ""
    if not truth:
        return None
    figures = compare_text(
        truth,
        "\n".join(line.text for line in lines),
        languages=label.row.languages,
        has_order=label.row.truth_order == "natural",
    )
    return Reading(
        scale=scale,
        found=figures.bag.recall,
        edits=figures.characters.edits if figures.characters else None,
        length=figures.characters.length if figures.characters else None,
    )


def _languages(label: LabelledPage) -> tuple[str, ...]:
    known = (TESSERACT_CODES[language] for language in label.row.languages if language in TESSERACT_CODES)
    return tuple(known) or ("eng",)


@cache
def _engines(engine: str) -> Engines:
    engines = build_engines(Settings(read={"engine": engine, "second_opinion": False}))
    ocr = (
        TesseractEngine(timeout_s=TIMEOUT_S, options=ONE_PASS)
        if engine == "tesseract"
        else engines.readers.ocr
    )
    return replace(engines, readers=replace(engines.readers, ocr=ocr, language_choice=None, second=None))


def _raster(label: LabelledPage, engines: Engines) -> PageRaster:
    settings = Settings()
    document = inspect_source(label.path, pdf=engines.pdf, limits=settings.intake, password=None)
    pages = rasterise_pages(
        label.path,
        document.media_type,
        (label.row.page_number,),
        pdf=engines.pdf,
        settings=settings.rasterise,
        password=None,
    )
    raster = next(iter(pages))[1]
    if not isinstance(raster, PageRaster):
        raise raster
    return raster


def sample(pages: Sequence[tuple[LabelledPage, OwnSize]], most: int) -> list[tuple[LabelledPage, OwnSize]]:
    """Up to ``most`` pages of each kind that were read well, evenly over the corpus."""
    kinds = defaultdict(list)
    for label, own in pages:
        if own.is_read_well:
            kinds[own.page.kind].append((label, own))
    return [
        pages[number * len(pages) // min(most, len(pages))]
        for pages in kinds.values()
        for number in range(min(most, len(pages)))
    ]


def measure(
    labels: Sequence[LabelledPage], console: Console, *, engine: str, jobs: int, per_kind: int
) -> list[MeasuredPage]:
    """All pages that can be read, those of the sample at each size."""
    with ProcessPoolExecutor(jobs) as pool:
        reading = pool.map(partial(read_at_own_size, engine=engine), labels)
        own = list(track(reading, "own size", total=len(labels), console=console))
        read = [(label, one) for label, one in zip(labels, own, strict=True) if one is not None]
        chosen = sample(read, per_kind)
        reading_again = pool.map(partial(read_at_each_size, engine=engine), *zip(*chosen, strict=True))
        again = track(reading_again, "each size", total=len(chosen), console=console)
        measured = {page.page_id: page for page in again}
    return [measured.get(one.page.page_id, one.page) for _, one in read]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    os.environ["OMP_THREAD_LIMIT"] = "1"
    console = Console(width=None if Console().is_terminal else 110)
    labels = read_corpora(options.corpus)
    pages = measure(labels, console, engine=options.engine, jobs=options.jobs, per_kind=options.per_kind)
    console.print(
        f"{options.engine}: {len(pages)} of {len(labels)} pages read, the others are blank or broken"
    )
    print_tables(pages, console)
    options.out.mkdir(parents=True, exist_ok=True)
    draw_legibility(pages, options.out / "budgets_legibility.png")
    draw_adaptive(pages, options.out / "budgets_adaptive.png")
    rows = [asdict(page) for page in pages]
    (options.out / "budgets.json").write_text(json.dumps(rows) + "\n", encoding="utf-8")
    console.print(f"Plots and budgets.json: {options.out}")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.budgets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", type=Path, nargs="+", required=True, help="folders with a MANIFEST.jsonl")
    parser.add_argument("--out", type=Path, default=Path("out/budgets"))
    parser.add_argument("--engine", choices=("tesseract", "paddleocr"), default="tesseract")
    parser.add_argument(
        "--per-kind", type=int, default=12, help="pages of each kind at each size (default: 12)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
