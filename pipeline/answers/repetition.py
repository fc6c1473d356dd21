"""Loops: a model that says the same again and again, told from a page that truly repeats itself.

An answer is taken as a row of tokens (words, signs, line ends, tags). A loop is a stretch in which each token equals
the one a period before it. Pages hold such stretches as well: columns of zeros, labels, attendance lists, forms in
duplicate. Three things part them: what repeats (whole rows may, sentences hardly), how often, and whether the OCR saw
it as often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_TOKENS: Final = 20_000
"""Only the last so many are looked at: a loop runs to the end."""
MOST_PERIOD: Final = 3_000
MOST_COMPARED: Final = 20_000_000
"""Tokens times periods: about 0.2 s."""

CONFIRMED_SHARE: Final = 0.5
"""What the OCR saw more than half as often as the answer has it is on the page: OCR misses words, it does not
loop."""
MOST_ROWS: Final = 60
"""Equal rows, lines or cells in a row. A page of small print has about 70 lines."""
MOST_LONG_ROWS: Final = 12
LONG_ROW_WORDS: Final = 12
"""Rows of more words, if they are not all numbers, differ somewhere: by a name, a date."""
MOST_WORDS_IN_LINE: Final = 30
"""Of one word or a short phrase within a line: "ha ha ha", "very, very"."""
MOST_COUNTED: Final = 120
"""Rows that differ by a number that counts on ("Room 101", "Room 102"), more than a page has lines."""
COUNTED_PER_SEEN: Final = 3
COUNTED_UNSEEN: Final = 20
"""Of such rows, how many more than the OCR saw an answer may have."""
MOST_FILL_CHARS: Final = 400
"""Dots, dashes or underscores in one stretch; a page is about 150 wide."""
MOST_FILL_LINES: Final = 100
LEAST_LINE_WORDS, LEAST_LINE_REPEATS, LEAST_LINE_SHARE = 5, 8, 0.35
"""A line that comes back between others: refrains stay below a third of a poem."""
MOST_JOINED_CHARS: Final = 200
"""Of one repeated pattern without a space: "aaaa", "1.1.1.1"."""
TAIL_CHARS, TAIL_PERIOD, LEAST_TAIL = 4_000, 20, 1_500
"""White space or signs without end, at the end of an answer that did not stop by itself."""

_TOKEN: Final = re.compile(
    r"<[^<>]+>|\n|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]|[^\W_]+|[^\s\w]|_"
)
_DIGITS: Final = re.compile(r"\d+")
_NO_LETTERS: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """``unit`` came ``repeats`` times, where ``limit`` would pass for the page's own."""

    name: str
    repeats: int
    limit: int
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """``length`` tokens from ``start`` on, each but the first ``period`` equal to the one a period before."""

    start: int
    period: int
    length: int

    @property
    def repeats(self) -> int:
        """The last one may lack a tenth: a line end, a full stop."""
        return int(self.length / self.period + 0.1)

    def is_part_of(self, other: _Run) -> bool:
        is_within = other.start <= self.start and self.start + self.length <= other.start + other.length
        return is_within and self.period % other.period == 0


def find_loop(markdown: str, seen: Counter[str]) -> Loop | None:
    """The loop that is further beyond its limit than any other. ``seen`` are the words that the OCR read on the page,
    casefolded, with their numbers."""
    tokens = tokens_of(markdown)[-MOST_TOKENS:]
    loops = (
        *_verbatim_loops(tokens, seen),
        *_counted_loops(tokens, seen),
        *_line_loops(markdown, seen),
        *_fill_loops(markdown),
        *_joined_loops(tokens),
    )
    return max(loops, key=lambda loop: loop.repeats / loop.limit, default=None)


def find_endless_tail(text: str) -> Loop | None:
    """A few characters repeated to the end of ``text``, white space included."""
    tail = text[-TAIL_CHARS:]
    codes = _codes(tail)
    for period in range(1, min(TAIL_PERIOD, len(tail) // 2) + 1):
        differing = np.flatnonzero(codes[:-period] != codes[period:])
        length = len(tail) - (int(differing[-1]) + 1 if len(differing) else 0)
        if length >= LEAST_TAIL:
            return Loop(
                name="endless_tail", repeats=length // period, limit=LEAST_TAIL // period, unit=tail[-period:]
            )
    return None


def tokens_of(text: str) -> list[str]:
    """Words, ideographs, signs, tags and line ends, casefolded; a sign that follows itself counts once."""
    found = _TOKEN.findall(text.casefold())
    return [
        token
        for before, token in zip(["", *found], found, strict=False)
        if token != before or token[0].isalnum() or token[0] == "<"
    ]


def _verbatim_loops(tokens: Sequence[str], seen: Counter[str]) -> Iterator[Loop]:
    for run in _runs(_codes(tokens), MOST_PERIOD):
        unit = tokens[run.start : run.start + run.period]
        limit = _most_repeats(unit)
        if run.repeats > limit and _times_seen(unit, seen) <= CONFIRMED_SHARE * run.repeats:
            yield Loop(name="repeats", repeats=run.repeats, limit=limit, unit=" ".join(unit))


def _most_repeats(unit: Sequence[str]) -> int:
    """How often ``unit`` may follow itself on a page."""
    words = [token for token in unit if token[0].isalnum()]
    is_rows = any(token == "\n" or token[0] == "<" for token in unit) and "<table>" not in unit
    if not words or (is_rows and all(word[0].isdigit() for word in words)):
        return MOST_ROWS
    if is_rows and (len(words) <= LONG_ROW_WORDS or "<tr>" in unit):
        return MOST_ROWS if len(words) <= LONG_ROW_WORDS else MOST_LONG_ROWS
    if len(words) <= 5:
        return MOST_WORDS_IN_LINE // len(words)
    return next(limit for least, limit in ((40, 1), (20, 2), (0, 3)) if len(words) >= least)


def _counted_loops(tokens: Sequence[str], seen: Counter[str]) -> Iterator[Loop]:
    """Rows that are equal but for numbers, of which one counts on."""
    masked = [_DIGITS.sub("#", token) for token in tokens]
    for run in _runs(_codes(masked), MOST_PERIOD // 10):
        unit = masked[run.start : run.start + run.period]
        counted = _times_seen(unit, seen)
        limit = (
            min(MOST_COUNTED, int(COUNTED_PER_SEEN * counted) + COUNTED_UNSEEN) if counted else MOST_COUNTED
        )
        if run.repeats <= limit or counted > CONFIRMED_SHARE * run.repeats:
            continue
        if _counts_on(tokens[run.start : run.start + run.length], run.period):
            sample = " ".join(tokens[run.start : run.start + run.period])
            yield Loop(name="counted_rows", repeats=run.repeats, limit=limit, unit=sample)


def _counts_on(tokens: Sequence[str], period: int) -> bool:
    """Whether some number grows by the same step nearly everywhere."""
    for offset in range(period):
        numbers = [
            int(digits[0][-9:]) for token in tokens[offset::period] if (digits := _DIGITS.search(token))
        ]
        steps = Counter(after - before for before, after in pairwise(numbers))
        if steps and (common := steps.most_common(1)[0])[0] != 0 and common[1] >= 0.9 * steps.total():
            return True
    return False


def _line_loops(markdown: str, seen: Counter[str]) -> Iterator[Loop]:
    lines = [
        tuple(token for token in tokens_of(line) if token[0].isalnum())
        for line in markdown.split("\n")
        if not line.startswith("<table>")
    ]
    total = sum(map(len, lines))
    for line, repeats in Counter(line for line in lines if len(line) >= LEAST_LINE_WORDS).most_common(1):
        is_much = repeats > LEAST_LINE_REPEATS and repeats * len(line) >= LEAST_LINE_SHARE * total
        if is_much and _times_seen(line, seen) <= CONFIRMED_SHARE * repeats:
            yield Loop(name="line_repeats", repeats=repeats, limit=LEAST_LINE_REPEATS, unit=" ".join(line))


def _fill_loops(markdown: str) -> Iterator[Loop]:
    parts = [part.strip() for line in markdown.split("\n") for part in _NO_LETTERS.split(line)]
    longest = max(parts, key=len, default="")
    if len(longest) > MOST_FILL_CHARS:
        yield Loop(name="fill_characters", repeats=len(longest), limit=MOST_FILL_CHARS, unit=longest[:40])
    lines = sum(1 for line in markdown.split("\n") if line.strip() and not _NO_LETTERS.search(line))
    if lines > MOST_FILL_LINES:
        yield Loop(name="fill_lines", repeats=lines, limit=MOST_FILL_LINES, unit=longest[:40])


def _joined_loops(tokens: Sequence[str]) -> Iterator[Loop]:
    for token in {token for token in tokens if len(token) > MOST_JOINED_CHARS}:
        for run in _runs(_codes(token), TAIL_PERIOD):
            if run.length > MOST_JOINED_CHARS:
                unit = token[run.start : run.start + run.period]
                yield Loop(
                    name="joined_repeats",
                    repeats=run.repeats,
                    limit=MOST_JOINED_CHARS // run.period,
                    unit=unit,
                )


def _runs(codes: NDArray[np.int64], most_period: int) -> Iterator[_Run]:
    """The longest stretch of each period that repeats at least once, without those that are multiples of a shorter
    period's."""
    size = len(codes)
    found: list[_Run] = []
    for period in range(1, min(int(size / 1.9), most_period, MOST_COMPARED // max(size, 1)) + 1):
        is_equal = codes[:-period] == codes[period:]
        if np.count_nonzero(is_equal) < int(0.9 * period):
            continue
        edges = np.concatenate(([-1], np.flatnonzero(~is_equal), [len(is_equal)]))
        gaps = np.diff(edges) - 1
        longest = int(gaps.argmax())
        run = _Run(start=int(edges[longest]) + 1, period=period, length=int(gaps[longest]) + period)
        if run.repeats >= 2 and not any(run.is_part_of(other) for other in found):
            found.append(run)
            yield run


def _codes(items: Sequence[str]) -> NDArray[np.int64]:
    numbers: dict[str, int] = {}
    return np.fromiter((numbers.setdefault(item, len(numbers)) for item in items), np.int64, len(items))


def _times_seen(unit: Sequence[str], seen: Counter[str]) -> float:
    """How often the OCR read what ``unit`` holds: the median of its words, longer ones where there are such."""
    words = Counter(token for token in unit if token[0].isalnum())
    telling = [word for word in words if len(word) >= 3] or list(words)
    return median(seen[word] / words[word] for word in telling) if telling else 0.0
