"""What a page must come out as, and what is wrong with one that did not."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NEEDS_SEEING = frozenset({"vlm", "ocr_degraded"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """``must`` may be off by ``edit_share`` of its length (OCR); all else is exact. White space never counts.

    ``order`` are passages in reading order, ``at_least`` a pattern and how often it must match, ``rows`` the
    table rows that must be in a table unless the page is marked as needing the VLM.
    """

    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    any_of: tuple[tuple[str, ...], ...] = ()
    by_page: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    page_count: int = 1
    routes: frozenset[str] | None = None
    not_routes: frozenset[str] = frozenset()
    rotation_deg: int | None = None
    has_wide_lines: bool = False
    edit_share: float = 0.0
    longest_text: int | None = None
    at_least: tuple[str, int] | None = None
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cousin:
    """One small input of a kind: ``write`` makes the file, ``expected`` is what must come of it."""

    name: str
    suffix: str
    write: Callable[[Path], None]
    expected: Expected

    @property
    def file_name(self) -> str:
        return f"{self.name}{self.suffix}"


def faults(output: Mapping[str, Any], expected: Expected) -> list[str]:
    """Everything wrong with a document's JSON, in words; empty when it is right."""
    pages: Sequence[Mapping[str, Any]] = output["pages"]
    if len(pages) != expected.page_count:
        return [f"{len(pages)} pages, expected {expected.page_count}"]
    return [*_text_faults(pages, expected), *_page_faults(pages, expected)]


def read_output(path: Path) -> Mapping[str, Any]:
    output: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return output


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).strip()


def occurs(wanted: str, text: str, most_edits: int) -> bool:
    """Whether ``wanted`` is somewhere in ``text`` with at most so many edits (Sellers' algorithm)."""
    if wanted in text:
        return True
    if most_edits < 1:
        return False
    column = list(range(len(wanted) + 1))
    for character in text:
        above, column[0] = column[0], 0
        for place, letter in enumerate(wanted, 1):
            above, column[place] = (
                column[place],
                min(column[place] + 1, column[place - 1] + 1, above + (letter != character)),
            )
        if column[-1] <= most_edits:
            return True
    return False


def _text_faults(pages: Sequence[Mapping[str, Any]], expected: Expected) -> Iterator[str]:
    raw = "\n".join(f"{page['text']}\n{page['markdown']}" for page in pages)
    texts = {page["page_number"]: plain(page["text"]) for page in pages}
    whole = " ".join(texts.values())
    for wanted in expected.must:
        yield from _missing(wanted, whole, expected.edit_share)
    for number, all_wanted in expected.by_page.items():
        for wanted in all_wanted:
            yield from _missing(wanted, texts[number], expected.edit_share)
    for unwanted in expected.must_not:
        if unwanted in raw or (unwanted.isprintable() and plain(unwanted) in plain(raw)):
            yield f"present: {unwanted!r}"
    for choices in expected.any_of:
        if not any(plain(choice) in whole for choice in choices):
            yield f"none of {choices}"
    yield from _order_faults(whole, expected.order)
    yield from _amount_faults(whole, expected)


def _amount_faults(text: str, expected: Expected) -> Iterator[str]:
    if expected.longest_text is not None and len(text) > expected.longest_text:
        yield f"{len(text)} characters: {text[:80]!r}"
    if expected.at_least is not None:
        pattern, count = expected.at_least
        found = len(re.findall(pattern, text))
        if found < count:
            yield f"{found} matches of {pattern}, at least {count}"


def _missing(wanted: str, text: str, edit_share: float) -> Iterator[str]:
    if not occurs(plain(wanted), text, int(edit_share * len(wanted))):
        yield f"missing: {wanted!r}"


def _order_faults(text: str, order: Sequence[str]) -> Iterator[str]:
    places = [text.find(plain(passage)) for passage in order]
    if -1 in places:
        yield f"missing for the order: {[part for part, at in zip(order, places, strict=True) if at < 0]}"
    elif places != sorted(places):
        yield f"out of order: {[order[places.index(at)] for at in sorted(places)]}"


def _page_faults(pages: Sequence[Mapping[str, Any]], expected: Expected) -> Iterator[str]:
    for page in pages:
        number, route = page["page_number"], page["route"]
        if expected.routes is not None and route not in expected.routes:
            yield f"page {number} went {route}"
        if route in expected.not_routes:
            yield f"page {number} went {route}"
        if expected.rotation_deg is not None and page["rotation_deg"] != expected.rotation_deg:
            yield f"page {number} was turned by {page['rotation_deg']}"
        if expected.has_wide_lines:
            yield from _box_faults(page)
        yield from _row_faults(page, expected.rows)


def _box_faults(page: Mapping[str, Any]) -> Iterator[str]:
    for line in page["lines"]:
        left, top, right, bottom = line["box"]
        inside = (
            left >= -2 and top >= -2 and right <= page["width_px"] + 2 and bottom <= page["height_px"] + 2
        )
        if not inside or right - left < bottom - top:
            yield f"page {page['page_number']}: line {line['text']!r} in box {line['box']}"


def _row_faults(page: Mapping[str, Any], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if page["route"] in NEEDS_SEEING:
        return
    found = [row for table in page["tables"] for row in _cells(table["html"])]
    for row in rows:
        if row not in found and row[1:] not in found:
            yield f"neither in a table nor marked for the model: {row}"


def _cells(html: str) -> list[tuple[str, ...]]:
    return [
        tuple(
            re.sub(r"<[^>]+>", "", cell).strip()
            for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)
        )
        for row in re.findall(r"<tr.*?</tr>", html, re.S)
    ]
