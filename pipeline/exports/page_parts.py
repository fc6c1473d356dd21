"""A page's JSON taken apart, as several formats need it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from models.page import ReadBy, Route

Json = Mapping[str, Any]


def is_failed(page: Json) -> bool:
    return page["error"] is not None


def is_by_vlm(page: Json) -> bool:
    return bool(page["route"] == Route.VLM)


def has_text_layer(page: Json) -> bool:
    """Whether the page's words are those that its PDF holds."""
    return bool(page["read_by"] == ReadBy.TEXT_LAYER)


def failure_note(page: Json) -> str:
    return f"Page {page['page_number']} could not be read: {page['error']['message']}"


def language_of(page: Json) -> str | None:
    """As the VLM names it; the reader on the CPU does not say."""
    return page["vlm"]["language"] if page["vlm"] else None


def blocks_with_lines(page: Json) -> Iterator[tuple[Json, Sequence[Json]]]:
    for block in page["blocks"]:
        first = block["first_line"]
        yield block, page["lines"][first : first + block["line_count"]]


def words_of(line: Json) -> Sequence[Json]:
    """The line's words, or the line as one where the reader gives none."""
    return line["words"] or [{"text": line["text"], "box": line["box"], "confidence": line["confidence"]}]


def is_followed_by_space(line: Json) -> Iterator[bool]:
    """For each of the line's words, whether white space stands between it and the next: in some scripts it does not."""
    text, position = line["text"], 0
    words = words_of(line)
    for word in words[:-1]:
        found = text.find(word["text"], position)
        if found < 0:
            yield True
            continue
        position = found + len(word["text"])
        yield position >= len(text) or text[position].isspace()
    yield False


def whole_box(box: Sequence[float]) -> str:
    """``left top right bottom`` in whole pixels around the box."""
    left, top, right, bottom = box
    return f"{math.floor(left)} {math.floor(top)} {math.ceil(right)} {math.ceil(bottom)}"


def text_angle_deg(page: Json) -> float:
    """How far the text is turned on the page as delivered, counter-clockwise, 0 to 360."""
    return round(float(page["rotation_deg"] + page["skew_deg"]) % 360, 2)
