"""Tesseract through pytesseract: pages in full. ``tesseract_scripts`` is the only other importer.

A page is one ``image_to_data`` call on an uncompressed grey file (encoding a PNG, which pytesseract does for
images handed to it, and colour cost a sixth of the time). Further calls are made only where the first one
shows the need: small print that was read with little confidence is enlarged, and letter-like ink that no
word accounts for is read again as sparse text.
"""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import pytesseract
import structlog
from PIL import Image

from models.errors import EngineError, EngineUnavailable
from models.text import Line, Word
from pipeline.engines.ocr_text import without_rubbish
from pipeline.engines.rereading import mean_confidence, merged, scaled, sure_words, without_words
from pipeline.engines.tesseract_tsv import lines_from_tsv
from pipeline.letters import (
    Letters,
    clusters,
    find_letters,
    marks_on_white,
    narrow_column,
    on_white,
    uncovered_letters,
)
from pipeline.tiles import TileRules, joined_lines, tiles_of

log = structlog.get_logger()

SPARSE_TEXT = "--psm 11"
ONE_BLOCK = "--psm 6"
NOT_INVERTED = "-c tessedit_do_invert=0"
SCRIPT_PACKAGES = {
    "Arabic": "arab",
    "Cyrillic": "cyrl",
    "Devanagari": "deva",
    "Fraktur": "frak",
    "Greek": "grek",
    "Hangul": "hang",
    "HanS": "hans",
    "HanT": "hant",
    "Hebrew": "hebr",
    "Japanese": "jpan",
    "Latin": "latn",
    "Thai": "thai",
}
"""Debian names the packages of script models by ISO 15924."""
LIST_TIMEOUT_S = 20.0


STRIPS = TileRules(
    max_side_px=30_000,
    max_aspect=20.0,
    min_strip_px=8_000,
    tile_aspect=8.0,
    min_tile_px=3_000,
    overlap_px=300,
)
"""Tesseract takes sides up to 32,767 px and reads strips of 15 to 1 whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TesseractOptions:
    """When a page is read again. Measured on 60 real pages with known text: forms at 90 dpi, receipts, print.

    Letters (x-height and capitals mixed) below ``minute_letter_px`` are enlarged at once, by
    ``enlargement``. Letters below ``tiny_letter_px`` are when the words' mean confidence is below
    ``tiny_print_confidence``, letters below ``small_letter_px`` when it is below ``small_print_confidence``;
    the more confident of the two readings stays. No image is enlarged beyond ``enlarged_pixels`` (a dense
    page of that size takes some ten seconds). Ink counts as missed from ``missed_letters`` letter-like marks
    and ``missed_share`` of all; rescued words need ``rescue_confidence``, which kept precision where it was
    in every class. A column of ``least_labels`` marks is read by itself where no more than ``labels_share`` of
    all marks are left without a word. A page with up to ``few_letters`` marks is read cluster by cluster, up to
    ``most_clusters``. Images with a side below ``least_side_px`` hold no text that Tesseract could see.
    """

    minute_letter_px: float = 7.0
    tiny_letter_px: float = 9.5
    tiny_print_confidence: float = 0.88
    small_letter_px: float = 11.5
    small_print_confidence: float = 0.80
    enlargement: float = 2.0
    enlarged_pixels: int = 8_000_000
    missed_letters: int = 8
    missed_share: float = 0.04
    rescue_confidence: float = 0.60
    least_labels: int = 3
    labels_share: float = 0.1
    few_letters: int = 30
    most_clusters: int = 8
    least_side_px: int = 8
    tiles: TileRules = STRIPS

    def factor_for(self, grey: Image.Image) -> float:
        """By how much an image may be enlarged, 1 for not at all."""
        most = math.sqrt(self.enlarged_pixels / (grey.width * grey.height))
        return max(1.0, min(self.enlargement, most))

    def enough_confidence(self, letter_height_px: float | None) -> float:
        """The mean confidence from which print of this height is not enlarged and read again."""
        if letter_height_px is None or letter_height_px >= self.small_letter_px:
            return 0.0
        is_tiny = letter_height_px < self.tiny_letter_px
        return self.tiny_print_confidence if is_tiny else self.small_print_confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What all Tesseract runs for one page share. ``deadline_s`` is on the monotonic clock."""

    languages: str
    dpi: float
    deadline_s: float


class TesseractEngine:
    """Reads pages with the ``tesseract`` binary on one thread (``OMP_THREAD_LIMIT=1`` is set for this
    process).

    ``timeout_s`` bounds all runs for one page together.
    """

    def __init__(self, *, timeout_s: float = 120.0, options: TesseractOptions | None = None) -> None:
        self._timeout_s = timeout_s
        self._options = options or TesseractOptions()
        os.environ["OMP_THREAD_LIMIT"] = "1"

    @property
    def name(self) -> str:
        return "tesseract"

    @cached_property
    def version(self) -> str:
        folder, languages = self._installed
        weights = [
            f"{language}:{file.stat().st_size}"
            for language in sorted(languages)
            if (file := folder / f"{language}.traineddata").is_file()
        ]
        digest = hashlib.sha256(repr((weights, self._options)).encode()).hexdigest()[:12]
        return f"{pytesseract.get_tesseract_version()}+{digest}"

    @property
    def installed_languages(self) -> frozenset[str]:
        return self._installed[1]

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        self._require(languages)
        if min(image.size) < self._options.least_side_px:
            return ()
        grey = image if image.mode == "L" else image.convert("L")
        call = _Call(languages="+".join(languages), dpi=dpi, deadline_s=time.monotonic() + self._timeout_s)
        tiles = tiles_of(grey, self._options.tiles)
        if len(tiles) == 1:
            return self._read_tile(grey, call)
        return joined_lines([(tile, self._read_tile(tile.crop(grey), call)) for tile in tiles])

    def _read_tile(self, grey: Image.Image, call: _Call) -> tuple[Line, ...]:
        letters = find_letters(grey)
        if 0 < len(letters.marks) <= self._options.few_letters:
            return without_rubbish(self._few_words(grey, letters, call))
        lines = self._first_reading(grey, letters, call)
        try:
            found = self._missed_words(grey, letters, _words(lines), call)
            found += self._missed_labels(grey, letters, [*_words(lines), *found], call)
        except EngineError as error:
            log.warning("second_reading_failed", engine=self.name, reason=str(error))
            found = []
        return without_rubbish(merged(lines, found))

    def _first_reading(self, grey: Image.Image, letters: Letters, call: _Call) -> tuple[Line, ...]:
        options = self._options
        mode = "" if letters.has_dark_area else NOT_INVERTED
        height_px = letters.height_px
        if height_px is not None and height_px < options.minute_letter_px:
            return self._run_enlarged(grey, call, mode)
        lines = self._run(grey, call, mode)
        if options.factor_for(grey) <= 1 or mean_confidence(lines) >= options.enough_confidence(height_px):
            return lines
        return max(lines, self._run_enlarged(grey, call, mode), key=mean_confidence)

    def _missed_words(
        self, grey: Image.Image, letters: Letters, words: Sequence[Word], call: _Call
    ) -> list[Word]:
        """What sparse mode finds in the ink that ``words`` leave out."""
        options = self._options
        missed = uncovered_letters(letters, words)
        if len(missed) < max(options.missed_letters, options.missed_share * len(letters.marks)):
            return []
        margin_px = letters.height_px or 0.0
        left = max(0, int(missed.left.min() / letters.scale - margin_px))
        top = max(0, int(missed.top.min() / letters.scale - margin_px))
        right = min(grey.width, int((missed.left + missed.width).max() / letters.scale + margin_px))
        bottom = min(grey.height, int((missed.top + missed.height).max() / letters.scale + margin_px))
        rest = without_words(grey, words).crop((left, top, right, bottom))
        read = self._run_enlarged if margin_px < options.small_letter_px else self._run
        return sure_words(read(rest, call, SPARSE_TEXT), options.rescue_confidence, left=left, top=top)

    def _missed_labels(
        self, grey: Image.Image, letters: Letters, words: Sequence[Word], call: _Call
    ) -> list[Word]:
        """Page segmentation drops single letters and digits that stand in a column of their own, such as "b." or
        the numbers of lines; that column, read as one block, gives them."""
        options = self._options
        missed = uncovered_letters(letters, words)
        if len(missed) > options.labels_share * len(letters.marks):
            return []
        box = narrow_column(missed, letters, least_rows=options.least_labels)
        if box is None:
            return []
        left, top, right, bottom = box
        around = [word for word in words if word.box.left < left or word.box.right > right]
        strip = without_words(grey, around).crop(
            (left, top, min(right, grey.width), min(bottom, grey.height))
        )
        read = sure_words(self._run(strip, call, ONE_BLOCK), options.rescue_confidence, left=left, top=top)
        return [word for word in read if not any(word.box.intersection(known.box) for known in words)]

    def _few_words(self, grey: Image.Image, letters: Letters, call: _Call) -> tuple[Line, ...]:
        """A nearly empty page: page segmentation overlooks a lone number, so each cluster is read by itself, and
        what cannot be read so without the thin marks around it (the dashes of "- 3 -")."""
        options = self._options
        clean = on_white(grey, letters)
        lines = self._run(clean, call, "")
        missed = uncovered_letters(letters, _words(lines))
        bare = marks_on_white(grey, letters, missed)
        found: list[Word] = []
        for box in clusters(missed, letters)[: options.most_clusters]:
            for page in (clean, bare):
                read = self._run(page.crop(box), call, ONE_BLOCK)
                words = sure_words(read, options.rescue_confidence, left=box[0], top=box[1])
                found += words
                if words:
                    break
        return merged(lines, found)

    def _run_enlarged(self, grey: Image.Image, call: _Call, mode: str) -> tuple[Line, ...]:
        factor = self._options.factor_for(grey)
        size = (round(grey.width * factor), round(grey.height * factor))
        large = grey.resize(size, Image.Resampling.BICUBIC)
        lines = self._run(large, replace(call, dpi=call.dpi * factor), mode)
        return tuple(scaled(line, 1 / factor) for line in lines)

    def _run(self, grey: Image.Image, call: _Call, mode: str) -> tuple[Line, ...]:
        remaining_s = call.deadline_s - time.monotonic()
        if remaining_s <= 0:
            raise EngineError(f"tesseract: no answer in {self._timeout_s:g} s; raise the OCR timeout")
        with TemporaryDirectory(prefix="doctriage-") as folder:
            file = Path(folder, "page.pgm")
            grey.save(file, format="PPM")
            return lines_from_tsv(self._tsv(str(file), call, mode, remaining_s))

    def _tsv(self, file: str, call: _Call, mode: str, timeout_s: float) -> str:
        try:
            tsv: str = pytesseract.image_to_data(
                file,
                lang=call.languages,
                config=f"--oem 1 --dpi {round(call.dpi)} {mode}",
                timeout=timeout_s,
                output_type=pytesseract.Output.STRING,
            )
        except pytesseract.TesseractNotFoundError as error:
            raise _not_installed() from error
        except pytesseract.TesseractError as error:
            raise EngineError(f"tesseract: {error.message[-300:]}") from error
        except (RuntimeError, OSError, UnicodeDecodeError) as error:
            raise EngineError(f"tesseract: {error}") from error
        return tsv

    def _require(self, languages: Sequence[str]) -> None:
        if not languages:
            raise EngineUnavailable("tesseract: name at least one language, for example eng")
        missing = [language for language in languages if language not in self._installed[1]]
        if missing:
            packages = " ".join(_debian_package(language) for language in missing)
            raise EngineUnavailable(
                f"tesseract: language {', '.join(missing)} is not installed; apt-get install {packages}"
            )

    @cached_property
    def _installed(self) -> tuple[Path, frozenset[str]]:
        """The folder of trained data and the languages in it, as the binary itself sees them."""
        command = [pytesseract.pytesseract.tesseract_cmd, "--list-langs"]
        try:
            listing = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=LIST_TIMEOUT_S
            ).stdout
        except FileNotFoundError as error:
            raise _not_installed() from error
        except (OSError, subprocess.SubprocessError) as error:
            raise EngineUnavailable(
                f"tesseract: --list-langs failed: {error}; reinstall tesseract-ocr"
            ) from error
        heading, *languages = listing.splitlines() or [""]
        folder = heading.split('"')[1] if heading.count('"') >= 2 else ""
        return Path(folder), frozenset(language.strip() for language in languages)


def _not_installed() -> EngineUnavailable:
    return EngineUnavailable("tesseract is not installed; apt-get install tesseract-ocr tesseract-ocr-eng")


def _debian_package(language: str) -> str:
    """``chi_sim`` is in tesseract-ocr-chi-sim; script models have packages of their own."""
    name = language.rpartition("/")[2]
    if name[:1].isupper():
        return (
            f"tesseract-ocr-script-{SCRIPT_PACKAGES.get(name, '…')} (apt-cache search tesseract-ocr-script)"
        )
    return f"tesseract-ocr-{name.replace('_', '-')}"


def _words(lines: Sequence[Line]) -> list[Word]:
    return [word for line in lines for word in line.words]
