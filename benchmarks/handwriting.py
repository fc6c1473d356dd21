"""Trains the handwriting detector: ``python -m benchmarks.handwriting --corpus DIR [--out FILE]``.

DIR is a labelled folder (``MANIFEST.jsonl``); only pages under licences that allow it are learned from. Handwriting
fonts are taken from the system (Debian: fonts-breip, fonts-femkeklaver, fonts-rufscript, fonts-sjfonts,
fonts-dkg-handwriting, fonts-bwht, fonts-kristi). docs/handwriting.md is the model card.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
import pypdfium2
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from models.text import Word
from pipeline.engines.tesseract import TesseractEngine
from pipeline.signals.handwriting import WEIGHTS_FILE
from pipeline.signals.ink_groups import SHAPE_NAMES, ShapeMeter, find_groups, find_strokes
from pipeline.signals.rules import find_rules
from pipeline.signals.view import PageView, view_page

Grey = NDArray[np.float32]
Shapes = NDArray[np.float64]
Row = Mapping[str, Any]

WRITTEN_SOURCE: Final = "CREMMA"
OPEN_LICENCES: Final = ("Apache-2.0", "MIT", "CC-BY", "BSD", "MPL", "CC-BY-SA")
CLOSED_HINTS: Final = ("non-commercial", "research", "ICDAR 2019", "IAM", "none stated")
FONT_NAMES: Final = (
    "breip femkeklaver Breip Rufscript Delphine SteveHand dkg BecauseWe Kristi DancingScript".split()  # noqa: SIM905
)
NOTES: Final = [
    "see file",
    "please call",
    "ok",
    "approved",
    "final",
    "revised",
    "paid in full",
    "copy to legal",
    "urgent",
    "no change",
    "check this",
    "yes",
    "N/A",
    "as discussed",
    "thanks",
    "return by",
    "call back",
    "not used",
    "see attached",
    "rec'd",
    "to be confirmed",
    "first draft",
    "less 10 %",
]
NAMES: Final = [
    "Anna Smith",
    "Peter Keller",
    "Maria Rossi",
    "Jean Moreau",
    "Lucie Duval",
    "Karl Weber",
    "Tom Jones",
    "Ines Costa",
]
PAGES_PER_PRINTED: Final = 5
NETWORKS: Final = 6
HIDDEN_UNITS: Final = 16


@dataclass(slots=True)
class _Canvas:
    """A page that is being written on: grey levels, where it is written, and what is taken."""

    grey: Grey
    written: NDArray[np.bool_]
    taken: NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    options = parser.parse_args()
    os.environ["OMP_THREAD_LIMIT"] = "1"
    rows = [json.loads(line) for line in (options.corpus / "MANIFEST.jsonl").read_text().splitlines()]
    root = options.corpus.parent if rows[0]["path"].startswith(options.corpus.name) else options.corpus
    with ProcessPoolExecutor() as pool:
        examples = list(pool.map(partial(_examples, root, _snippets(root, rows)), _printed_rows(rows)))
        whole = list(pool.map(partial(_whole_page, root), _written_rows(rows)))
    shapes = np.vstack([shapes for shapes, _ in (*examples, *whole)])
    labels = np.concatenate([labels for _, labels in (*examples, *whole)])
    print(f"{len(labels):,} groups, {int(labels.sum()):,} of them written")
    options.out.write_text(json.dumps(_trained(shapes, labels)) + "\n", encoding="utf-8")
    print(f"wrote {options.out}")


def _is_open(row: Row) -> bool:
    licence = str(row["licence"])
    return licence.startswith(("repo ", *OPEN_LICENCES)) and not any(hint in licence for hint in CLOSED_HINTS)


def _written_rows(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if WRITTEN_SOURCE in str(row["source_repo"]) and _is_open(row)]


def _printed_rows(rows: Sequence[Row]) -> list[Row]:
    spoiled = ("has_handwriting", "has_stamp", "is_blank", "is_rotated", "synthetic")
    return [row for row in rows if _is_open(row) and not any(row[label] for label in spoiled)]


def _page_image(path: Path) -> Image.Image:
    if path.suffix == ".pdf":
        return pypdfium2.PdfDocument(path)[0].render(scale=150 / 72).to_pil().convert("L")
    with Image.open(path) as image:
        return image.convert("L")


def _view_of(path: Path) -> PageView:
    """Read once by OCR, so that the page's text height is known as it will be in use."""
    image = _page_image(path)
    lines = TesseractEngine().read(image, dpi=150, languages=("eng",))
    return view_page(image, tuple(word for line in lines for word in line.words))


def _shapes_of(view: PageView) -> Iterator[tuple[tuple[slice, slice], NDArray[np.bool_], Shapes]]:
    picture = find_strokes(view, find_rules(view))
    meter = ShapeMeter(picture, view)
    for group in find_groups(picture, view):
        yield group.window, picture.ink[group.window] > 0, meter.shape(group)


def _whole_page(root: Path, row: Row) -> tuple[Shapes, NDArray[np.float64]]:
    """Every group of half a text height and more on a page that is written by hand."""
    view = _view_of(root / row["path"])
    large = [shape for _, _, shape in _shapes_of(view) if shape[0] > 0.5 and shape[-1] > 0]
    shapes = np.array(large).reshape(-1, len(SHAPE_NAMES))
    return shapes, np.ones(len(shapes))


def _examples(root: Path, snippets: Sequence[Grey], row: Row) -> tuple[Shapes, NDArray[np.float64]]:
    """The printed page as it is, and some times with notes on it; three times the weight for what is written."""
    printed = _view_of(root / row["path"])
    shapes = [shape for _, _, shape in _shapes_of(printed)]
    labels = [0.0] * len(shapes)
    for number in range(PAGES_PER_PRINTED):
        random = np.random.default_rng([number, *row["id"].encode()])
        canvas = _written_on(printed, snippets, random)
        image = Image.fromarray(_as_scanned(canvas.grey, random))
        words = tuple(replace(word, box=word.box.scaled(printed.scale)) for word in printed.words)
        for window, own, shape in _shapes_of(view_page(image, words)):
            near = cv2.dilate(canvas.written[window].astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
            share = float((own & near).sum() / max(own.sum(), 1))
            repeats = 3 if share > 0.7 else 1 if share < 0.05 else 0
            shapes += [shape] * repeats
            labels += [float(share > 0.7)] * repeats
    return np.array(shapes).reshape(-1, len(SHAPE_NAMES)), np.array(labels)


def _written_on(view: PageView, snippets: Sequence[Grey], random: np.random.Generator) -> _Canvas:
    shape = view.grey.shape
    canvas = _Canvas(view.grey.astype(np.float32), np.zeros(shape, np.bool_), view.ink > 0)
    em = min(view.text_height_px, 22.0)
    for _ in range(random.integers(5, 13)):
        note = snippets[random.integers(len(snippets))] if random.random() < 0.5 else _set_in_a_font(random)
        is_signature = random.random() < 0.2
        height = em * (random.uniform(2.5, 6.5) if is_signature else random.uniform(0.9, 3.4))
        _place(canvas, note, height, random.normal(0, 5), random, is_written=True)
    for _ in range(random.integers(0, 4)):
        word = _printed_word(view, random)
        if word is not None:
            tilt = float(random.choice([0, 0, random.normal(0, 6)]))
            word = np.rot90(word).copy() if random.random() < 0.25 else word
            _place(canvas, word, em * random.uniform(0.8, 2.6), tilt, random, is_written=False)
    return canvas


def _place(
    canvas: _Canvas,
    darkness: Grey,
    height: float,
    tilt_deg: float,
    random: np.random.Generator,
    *,
    is_written: bool,
) -> None:
    """Where there is most room of fourteen places tried; nowhere, if all are taken."""
    scale = height / darkness.shape[0]
    size = (max(6, round(darkness.shape[1] * scale)), max(5, round(height)))
    small = cv2.resize(darkness, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    margin = int(size[0] * abs(np.sin(np.radians(tilt_deg))) / 2) + 2
    small = cv2.copyMakeBorder(small, margin, margin, 2, 2, cv2.BORDER_CONSTANT, value=0)
    rows, columns = small.shape
    turn = cv2.getRotationMatrix2D((columns / 2, rows / 2), tilt_deg, 1)
    small = cv2.warpAffine(small, turn, (columns, rows))
    room = (canvas.grey.shape[0] - rows - 32, canvas.grey.shape[1] - columns - 32)
    if min(room) <= 0:
        return
    places = [(16 + random.integers(room[0]), 16 + random.integers(room[1])) for _ in range(14)]
    windows = [np.s_[top : top + rows, left : left + columns] for top, left in places]
    window = min(windows, key=lambda place: canvas.taken[place].mean())
    if canvas.taken[window].mean() > (0.04 if random.random() < 0.5 else 0.15):
        return
    opacity = np.clip(small * random.uniform(0.9, 1.7), 0, 1)
    if random.random() < 0.4:
        opacity = cv2.GaussianBlur(cv2.dilate(opacity, np.ones((2, 2), np.uint8)), (3, 3), 0)
    pen = np.minimum(random.uniform(0, 90), canvas.grey[window])
    canvas.grey[window] = canvas.grey[window] * (1 - opacity) + pen * opacity
    canvas.taken[window] |= opacity > 0.1
    if is_written:
        canvas.written[window] |= opacity > 0.35


def _as_scanned(grey: Grey, random: np.random.Generator) -> NDArray[np.uint8]:
    """As it is, or turned black and white through noise."""
    if random.random() < 0.5:
        noise = cv2.GaussianBlur(random.normal(0, 1, grey.shape).astype(np.float32), (0, 0), 0.7)
        grey = np.where(grey + noise * random.uniform(0, 45) < random.uniform(120, 190), 0, 255)
        grey = cv2.GaussianBlur(grey.astype(np.float32), (3, 3), 0)
    return np.clip(grey, 0, 255).astype(np.uint8)


def _snippets(root: Path, rows: Sequence[Row]) -> list[Grey]:
    """Words and pieces of lines cut from written pages, as darkness from 0 to 1."""
    random = np.random.default_rng(0)
    return [cut for row in _written_rows(rows) for cut in _cuts(_page_image(root / row["path"]), random)]


def _cuts(page: Image.Image, random: np.random.Generator) -> Iterator[Grey]:
    page.thumbnail((1900, 3800))
    grey = np.asarray(page)
    paper = cv2.medianBlur(cv2.morphologyEx(grey, cv2.MORPH_CLOSE, np.ones((31, 31), np.uint8)), 31)
    darkness = cv2.subtract(cv2.subtract(paper, grey), 12)
    ink = (darkness > 18).astype(np.uint8)
    stats = cv2.connectedComponentsWithStats(ink)[2][1:]
    letter = float(np.median(stats[stats[:, cv2.CC_STAT_AREA] > 60][:, cv2.CC_STAT_HEIGHT]))
    joined = cv2.dilate(ink, np.ones((3, max(3, int(0.8 * letter))), np.uint8))
    for left, top, width, height, _ in cv2.connectedComponentsWithStats(joined)[2][1:].tolist():
        if not (letter < height < 5 * letter and 1.2 * height < width < 0.7 * grey.shape[1]):
            continue
        cut = darkness[top : top + height, left : left + min(width, int(random.uniform(2, 9) * height))]
        if (cut > 18).sum() > 150:
            yield np.minimum(cut.astype(np.float32) / max(float(np.percentile(cut, 98)), 30.0), 1.0)


@cache
def _fonts() -> tuple[str, ...]:
    found = sorted(str(path) for path in Path("/usr/share/fonts").rglob("*.[ot]tf"))
    return tuple(path for path in found if any(name in path for name in FONT_NAMES))


def _set_in_a_font(random: np.random.Generator) -> Grey:
    """A date, a number, a name or a note, with a wobble so that equal letters differ."""
    if not _fonts():
        raise SystemExit("no handwriting font; install those named in this script's first lines")
    font = ImageFont.truetype(_fonts()[random.integers(len(_fonts()))], 64)
    text = _text(random)
    left, top, right, bottom = (round(edge) for edge in font.getbbox(text))
    image = Image.new("L", (right - left + 40, bottom - top + 40), 0)
    pen = ImageDraw.Draw(image)
    pen.text((20 - left, 20 - top), text, font=font, fill=255, stroke_width=int(random.integers(0, 2)))
    plain = np.asarray(image).astype(np.float32) / 255
    down, across = np.mgrid[: plain.shape[0], : plain.shape[1]].astype(np.float32)
    return cv2.remap(
        plain, across + _wobble(plain, random), down + _wobble(plain, random), cv2.INTER_LINEAR
    ).astype(np.float32)


def _wobble(like: Grey, random: np.random.Generator) -> Grey:
    noise = random.uniform(-1, 1, like.shape).astype(np.float32)
    return (cv2.GaussianBlur(noise, (0, 0), 12) * 60 * random.uniform(0.2, 1)).astype(np.float32)


def _text(random: np.random.Generator) -> str:
    date = f"{random.integers(1, 13)}/{random.integers(1, 29)}/{random.integers(70, 99)}"
    number = str(random.integers(1, 99_999))
    amount = f"{random.integers(1, 999)}.{random.integers(0, 99):02d}"
    note = str(random.choice(NOTES))
    return str(random.choice([date, number, amount, random.choice(NAMES), note, note.upper()]))


def _printed_word(view: PageView, random: np.random.Generator) -> Grey | None:
    words: tuple[Word, ...] = view.words
    if not words:
        return None
    left, top, right, bottom = view.word_boxes[random.integers(len(words))]
    right = min(right + random.uniform(0, 6) * (bottom - top), view.width_px - 1)
    cut = view.grey[int(top) : int(bottom) + 1, int(left) : int(right) + 1]
    return (255 - cut.astype(np.float32)) / 255 if min(cut.shape) >= 5 else None


def _trained(shapes: Shapes, labels: NDArray[np.float64]) -> dict[str, object]:
    """Several small networks, whose log-odds are averaged, are one with as many hidden units."""
    scaler = StandardScaler().fit(shapes)
    networks = [
        MLPClassifier((HIDDEN_UNITS,), alpha=0.1, max_iter=60, early_stopping=True, random_state=seed).fit(
            scaler.transform(shapes), labels
        )
        for seed in range(NETWORKS)
    ]
    output = np.concatenate([network.coefs_[1][:, 0] for network in networks]) / NETWORKS
    bias = sum(float(network.intercepts_[1][0]) for network in networks) / NETWORKS
    return {
        "names": list(SHAPE_NAMES),
        "mean": scaler.mean_.round(5).tolist(),
        "scale": scaler.scale_.round(5).tolist(),
        "hidden": np.hstack([network.coefs_[0] for network in networks]).round(4).tolist(),
        "hidden_bias": np.concatenate([network.intercepts_[0] for network in networks]).round(4).tolist(),
        "output": output.round(4).tolist(),
        "output_bias": round(bias, 4),
    }


if __name__ == "__main__":
    main()
