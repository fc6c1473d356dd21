"""Typesetting that keeps the letters and loses the words: soft hyphens, columns, visual order."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pypdfium2
from bidi.algorithm import get_display
from reportlab.pdfgen.canvas import Canvas

from tests.kinds.judging import Cousin, Expected
from tests.kinds.paper import drawn_pdf, embedded, pasted, printed

SOFT = "\u00ad"
PIPES = (
    "Letter from the gas works",
    f"The main pipe under the mar{SOFT}ket square will be ex{SOFT}",
    f"changed in autumn. Shop{SOFT}keepers on the north si{SOFT}de are",
    f"asked to keep the pave{SOFT}ment free, and all deli{SOFT}",
    "veries come through the yard until the work is done.",
)
NEIGHBOUR = (
    "The bakery stays open on all days.",
    "Its oven has a pipe of its own.",
    "Rolls as ever from six.",
)
SOFT_WORDS = ("market square", "exchanged", "Shopkeepers", "side are", "pavement free", "deliveries")


def soft_hyphens() -> Iterator[Cousin]:
    """An invisible hyphen is no character of the text, and one at a line end is no break in the word."""
    for face in ("DejaVuSerif", "DejaVuSans-Bold", "Helvetica"):
        yield _soft(
            f"soft_hyphens_{face.lower()}", lambda canvas, face=face: printed(canvas, PIPES, face=face)
        )
    yield _soft("soft_hyphens_in_two_columns", _soft_in_columns)
    yield _soft("soft_hyphens_not_drawn", _soft_zero_width)


def _soft(name: str, draw: Callable[[Canvas], None]) -> Cousin:
    def choices(word: str) -> tuple[str, ...]:
        return tuple(
            {word, *(f"{word[:at]}{dash}{word[at:]}" for at in range(1, len(word)) for dash in ("-", "- "))}
        )

    expected = Expected(
        must=("through the yard until the work is done.",),
        must_not=(SOFT, "\ufffe", "\ufffd", "\u0002"),
        any_of=tuple(choices(word) for word in SOFT_WORDS),
    )
    return Cousin(name=name, suffix=".pdf", write=lambda path: drawn_pdf(path, draw), expected=expected)


def _soft_in_columns(canvas: Canvas) -> None:
    printed(canvas, PIPES, size_pt=9, leading_pt=14)
    printed(canvas, NEIGHBOUR, size_pt=9, leading_pt=14, left_pt=340)


def _soft_zero_width(canvas: Canvas) -> None:
    """A typesetter that keeps the mark in the text and leaves no room for it on paper."""
    for number, line in enumerate(PIPES):
        pen = canvas.beginText(70, 760 - 24 * number)
        pen.setFont(embedded("DejaVuSerif"), 13)
        first, *others = line.split(SOFT)
        pen.textOut(first)
        for part in others:
            pen.setTextRenderMode(3 if part else 0)
            pen.setHorizScale(1 if part else 100)
            pen.textOut(SOFT)
            pen.setTextRenderMode(0)
            pen.setHorizScale(100)
            pen.textOut(part)
        canvas.drawText(pen)


STORIES = (
    (
        "The rope walk by the river",
        "was four hundred paces long",
        "and covered with slate. Boys",
        "turned the wheel from dawn",
        "while the spinner stepped",
        "back with hemp around him.",
        "It burned in a dry summer.",
    ),
    (
        "A garden lies there today,",
        "where the wall still shows",
        "soot above the older beam.",
        "Children of the school grow",
        "beans along the former path",
        "and measure them in spans",
        "as the ropes used to be.",
    ),
    (
        "Visitors ring at the house",
        "of the gardener and borrow",
        "a key against one coin. In",
        "the shed hangs a last coil,",
        "tarred and stiff, which no",
        "ship came back to fetch at",
        "the end of the old harbour.",
    ),
)


def columns_drawn_across() -> Iterator[Cousin]:
    """Columns whose lines are drawn row by row: what belongs together is seen, not streamed."""
    for count, gutter_pt, size_pt in ((2, 24, 11), (2, 14, 11), (2, 11, 9), (3, 20, 10), (3, 12, 9)):
        yield _columns(count, gutter_pt, size_pt)
    yield _columns(2, 18, 11, is_scan=True)
    yield _columns(3, 20, 10, is_scan=True)


def _columns(count: int, gutter_pt: float, size_pt: float, *, is_scan: bool = False) -> Cousin:
    stories = STORIES[:count]

    def draw(canvas: Canvas) -> None:
        face = embedded("DejaVuSerif")
        printed(canvas, ["Ropes and beans"], size_pt=20, face="DejaVuSans-Bold", top_pt=780)
        canvas.setFont(face, size_pt)
        lefts = [60.0]
        for story in stories[:-1]:
            lefts.append(lefts[-1] + max(canvas.stringWidth(line) for line in story) + gutter_pt)
        for number, row in enumerate(zip(*stories, strict=True)):
            for left_pt, line in zip(lefts, row, strict=True):
                canvas.drawString(left_pt, 740 - number * size_pt * 1.4, line)

    def write(path: Path) -> None:
        drawn_pdf(path, draw)
        if is_scan:
            _photograph(path)

    kind = "scan" if is_scan else "print"
    return Cousin(
        name=f"columns_{count}_gutter_{gutter_pt}_{kind}",
        suffix=".pdf",
        write=write,
        expected=Expected(
            must=tuple(" ".join(story) for story in stories),
            order=("Ropes and beans", *(story[0] for story in stories)),
            edit_share=0.02 * is_scan,
        ),
    )


def _photograph(path: Path) -> None:
    """The page as one picture of itself."""
    with pypdfium2.PdfDocument(path) as document:
        picture = document[0].render(scale=200 / 72).to_pil().convert("L")
    drawn_pdf(path, lambda canvas: pasted(canvas, picture))


HEBREW = ("דוח שנתי של המוזיאון", "בשנת 2024 נוספו 350 ציורים", "הגן פתוח לילדים בכל בוקר")
ARABIC = ("تقرير حديقة المدينة", "زرعنا تسعين شجرة جديدة", "يفتح الباب كل صباح")


def visual_order() -> Iterator[Cousin]:
    """Right-to-left words painted from left to right come out as they are read."""
    for name, lines in (("hebrew", HEBREW), ("arabic", ARABIC)):
        yield _visual(f"{name}_line_by_line", lines, _paint_lines)
        yield _visual(f"{name}_word_by_word", lines, _paint_words)
    yield _visual("hebrew_letter_by_letter", HEBREW, _paint_letters)
    yield _visual("hebrew_under_english", HEBREW, _paint_under_english, also=("The museum in one year",))


def _visual(
    name: str,
    lines: Sequence[str],
    paint: Callable[[Canvas, Sequence[str]], None],
    *,
    also: tuple[str, ...] = (),
) -> Cousin:
    back_to_front = tuple(
        word[::-1] for line in lines for word in line.split() if not word.isdigit() and len(word) > 3
    )

    def draw(canvas: Canvas) -> None:
        canvas.setFont(embedded("DejaVuSans"), 15)
        paint(canvas, lines)

    return Cousin(
        name=f"visual_{name}",
        suffix=".pdf",
        write=lambda path: drawn_pdf(path, draw),
        expected=Expected(must=(*lines, *also), must_not=back_to_front, order=lines),
    )


def _paint_lines(canvas: Canvas, lines: Sequence[str]) -> None:
    for number, line in enumerate(lines):
        canvas.drawRightString(520, 760 - 36 * number, get_display(_joined(line)))


def _paint_words(canvas: Canvas, lines: Sequence[str]) -> None:
    """The words from right to left, the letters of each from left to right."""
    for number, line in enumerate(lines):
        right_pt = 520.0
        for word in line.split():
            canvas.drawRightString(right_pt, 760 - 36 * number, get_display(_joined(word)))
            right_pt -= canvas.stringWidth(_joined(word)) + 5


def _paint_letters(canvas: Canvas, lines: Sequence[str]) -> None:
    """Each letter on its own, in logical order: what a modern typesetter writes."""
    for number, line in enumerate(lines):
        display = get_display(line)
        lefts = list(itertools.accumulate((canvas.stringWidth(letter) for letter in display), initial=300.0))
        for place in range(len(display) - 1, -1, -1):
            canvas.drawString(lefts[place], 760 - 36 * number, display[place])


def _paint_under_english(canvas: Canvas, lines: Sequence[str]) -> None:
    canvas.drawString(70, 790, "The museum in one year")
    _paint_lines(canvas, lines)


def _joined(text: str) -> str:
    """Arabic letters in the shape that their neighbours give them (presentation forms B); no others."""
    shaped = []
    for place, letter in enumerate(text):
        before = place > 0 and "initial" in _shapes(text[place - 1])
        after = place + 1 < len(text) and "final" in _shapes(text[place + 1])
        shapes = _shapes(letter)
        wanted = {(True, True): "medial", (True, False): "final", (False, True): "initial"}.get(
            (before, after), "isolated"
        )
        fallback = "final" if before else "isolated"
        shaped.append(shapes.get(wanted, shapes.get(fallback, letter)))
    return "".join(shaped)


def _shapes(letter: str) -> dict[str, str]:
    found = {}
    for code in range(0xFE80, 0xFEF5):
        kind, *base = unicodedata.decomposition(chr(code)).split()
        if base == [f"{ord(letter):04X}"]:
            found[kind.strip("<>")] = chr(code)
    return found
