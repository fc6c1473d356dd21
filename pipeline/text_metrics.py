"""How close a page's text is to the truth: edit rates where the truth has one right order, words in any order
elsewhere, and the cells of tables.

Both texts are made comparable first: case, compatibility forms, look-alike quotes and dashes, words broken at
line ends, leader dots and white space do not count, nor does the markup of a result.
"""

from __future__ import annotations

import csv
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz.distance import Levenshtein

WITHOUT_WORD_SPACES: Final = frozenset({"zh", "ja", "th"})
"""Languages whose words are compared as pairs of characters."""

SPACES_NOT_COUNTED: Final = WITHOUT_WORD_SPACES | {"ko"}

_LOOK_ALIKES: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚", "'"),
        **dict.fromkeys("“”„«»", '"'),
        **dict.fromkeys("–—‐‑−", "-"),
        **dict.fromkeys("\u00ad\u200b\ufeff\u200e\u200f", ""),
        "…": "...",
        "ſ": "s",
    }
)
_BROKEN_WORD: Final = re.compile(r"(?<=\w)-\s*\n\s*(?=\w)")
_LEADERS: Final = re.compile(r"(?:[._\-=*]\s?){4,}")
_LINE_ENDING_TAG: Final = re.compile(r"<br\s*/?>|</(?:td|th|tr|p|div|li|h\d)>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_PICTURE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINE_MARK: Final = re.compile(r"^\s{0,3}(?:#{1,6}|>|```\w*)\s*", re.MULTILINE)
_TABLE_RULE: Final = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*:?-*:?\s*$", re.MULTILINE)
_CELL: Final = re.compile(r"<t[dh][^>]*>(.*?)</t[dh]>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditCounts:
    """Edits that turn a text into the truth, at most the truth's length, and that length."""

    edits: int
    length: int

    @property
    def rate(self) -> float:
        return self.edits / self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Of the items of two bags: precision, recall and F1, 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFigures:
    """``characters`` and ``words`` are None where the truth has no one right order, or nothing in it."""

    bag: Overlap
    characters: EditCounts | None
    words: EditCounts | None


def compare_text(truth: str, text: str, *, languages: Sequence[str], has_order: bool) -> TextFigures:
    """``languages`` are two-letter codes; ``has_order``: the truth's order is the one right order."""
    wanted, given = comparable(truth), comparable(without_markup(text))
    bag = overlap(_tokens(wanted, languages), _tokens(given, languages))
    if not has_order or not wanted:
        return TextFigures(bag=bag, characters=None, words=None)
    words = _edits(wanted.split(), given.split())
    if SPACES_NOT_COUNTED & set(languages):
        wanted, given = wanted.replace(" ", ""), given.replace(" ", "")
    return TextFigures(bag=bag, characters=_edits(wanted, given), words=words)


def compare_cells(truth: Sequence[str], cells: Sequence[str]) -> Overlap:
    """Cells in any order; empty ones do not count."""
    return overlap([cell for cell in truth if cell], [cell for cell in cells if cell])


def comparable(text: str) -> str:
    """The form in which texts are compared."""
    text = unicodedata.normalize("NFKC", text.translate(_LOOK_ALIKES)).translate(_LOOK_ALIKES).casefold()
    text = _LEADERS.sub(" ", _BROKEN_WORD.sub("", text))
    return re.sub(r"\s+", " ", text).strip()


def without_markup(text: str) -> str:
    """Only the words of Markdown or HTML."""
    text = html.unescape(_TAG.sub(" ", _LINE_ENDING_TAG.sub("\n", text)))
    text = _TABLE_RULE.sub("", _LINE_MARK.sub("", _PICTURE.sub(" ", text)))
    return text.replace("|", " ").replace("**", "")


def html_cells(markup: str) -> list[str]:
    return [comparable(without_markup(cell)) for cell in _CELL.findall(markup)]


def csv_cells(text: str) -> list[str]:
    return [comparable(cell) for row in csv.reader(text.splitlines()) for cell in row]


def piped_cells(text: str) -> list[str]:
    """Cells of tables written with ``|``."""
    rows = [line.strip().strip("|").split("|") for line in text.splitlines() if _is_piped_row(line)]
    return [comparable(cell) for row in rows for cell in row]


def overlap(truth: Iterable[str], given: Iterable[str]) -> Overlap:
    """Two empty bags agree."""
    wanted, found = Counter(truth), Counter(given)
    shared = (wanted & found).total()
    return Overlap(
        precision=shared / found.total() if found else float(not wanted),
        recall=shared / wanted.total() if wanted else float(not found),
    )


def _is_piped_row(line: str) -> bool:
    return line.count("|") >= 2 and not re.fullmatch(r"[\s|:\-]+", line)


def _tokens(text: str, languages: Sequence[str]) -> list[str]:
    if not WITHOUT_WORD_SPACES & set(languages):
        return re.findall(r"\w+", text)
    letters = re.sub(r"[\W_]+", "", text)
    pairs = [letters[start : start + 2] for start in range(len(letters) - 1)]
    return pairs or ([letters] if letters else [])


def _edits(truth: Sequence[str], given: Sequence[str]) -> EditCounts:
    return EditCounts(edits=min(Levenshtein.distance(truth, given), len(truth)), length=len(truth))
