"""HTML and Markdown in an answer reduced to the output contract: tables and marks; everything else is text.

The allow-list is enforced by nh3 (ammonia, html5ever). Around it stands what a sanitiser of HTML cannot know of
Markdown: a ``<`` that opens no known tag is text, and so are ``&`` and ``>``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

import nh3
from markdown_it import MarkdownIt

from pipeline.answers.links import without_links
from pipeline.answers.tables import MOST_SPAN, with_html_tables

TABLE_TAGS: Final = frozenset({"table", "caption", "tr", "td", "th"})
MARKS: Final = frozenset({"handwriting", "stamp", "signature", "figure"})
INLINE_TAGS: Final = frozenset({"b", "i", "u", "s", "strong", "em", "sup", "sub", "br", "code"})
ALLOWED_TAGS: Final = TABLE_TAGS | MARKS | INLINE_TAGS

DROPPED_WITH_CONTENT: Final = (
    "script",
    "style",
    "iframe",
    "object",
    "template",
    "noscript",
    "svg",
    "math",
    "head",
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PARAGRAPHS: Final = _words(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption footer form header hr html"
    " legend main nav ol option p pre section select summary ul"
)
_HEADINGS: Final = {f"h{level}": "\n\n" + "#" * level + " " for level in range(1, 7)}
_BREAKS: Final = {**dict.fromkeys(_PARAGRAPHS, "\n\n"), **_HEADINGS, "li": "\n- "}
_VOID: Final = _words(
    "a abbr acronym audio bdi bdo big button canvas cite col colgroup data del dfn font img input ins kbd label link"
    " map mark meta meter nobr output picture progress q rp rt ruby samp small source span strike tbody textarea tfoot"
    " thead time title tt var video wbr"
)
"""HTML that says nothing here: the tags go, what they hold stays."""
_FOREIGN: Final = frozenset({"answer", "output", "transcription", "page_number", "watermark", "ocr"})
"""Marks of other contracts: the same."""

_TAG: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_]{0,30})((?:[\s/][^<>]{0,2000})?)>")
_ATTRIBUTE: Final = re.compile(r"[\s/]+[A-Za-z][\w:-]*\s*=\s*[\"'\w#/.-]")
"""Where the first is none, as in "a <b and c> d", it is no tag."""
_SPAN: Final = re.compile(r"\b(rowspan|colspan)\s*=\s*[\"']?\s*([0-9]{1,3})\b", re.IGNORECASE)
_ENTITY: Final = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENTITY_AHEAD: Final = re.compile(r"#?\w{1,32};")
_SHIELDED: Final = re.compile(r"&(amp|lt|gt|nbsp);")
_TAG_AHEAD: Final = re.compile(r"[A-Za-z/!?]")
_TABLE_EDGE: Final = re.compile(r"<(/?)table>")
_AROUND_CELLS: Final = re.compile(r" ?(</?(?:table|caption|tr|td|th)(?: [^<>]*)?>) ?")
_BOLD: Final = re.compile(r"\*\*([^*<>]{1,300})\*\*")

_DASHES: Final = re.compile(r"(?m)^([ \t>]*)([-+*])(?=(?:[ \t]+[-+*>]){2,}[ \t])")

_BLOCKS: Final = MarkdownIt("commonmark", {"html": True})
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
_CLEANER: Final = nh3.Cleaner(
    tags=ALLOWED_TAGS,
    attributes={"*": set(), "td": {"rowspan", "colspan"}, "th": {"rowspan", "colspan"}},
    link_rel=None,
)


def clean_markup(markdown: str) -> str:
    """``markdown`` with the contract's tags only, every table as one line of HTML, and no link that runs anything.
    Listings in fences stay as they are. Cleaning may bring new markup to light: repeat until nothing changes."""
    parts = (_closed(part) if is_code else _clean_prose(part) for is_code, part in _parts(markdown))
    return "\n\n".join(part for part in parts if part)


def as_plain(markdown: str) -> str:
    """``markdown`` without any tag or link at all: for what will not come clean."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", markdown).replace("](", "] (").replace("]:", "] :")


def _parts(markdown: str) -> Iterator[tuple[bool, str]]:
    """Listings in fences, True, and what is between them."""
    lines = markdown.split("\n")
    position = 0
    for start, end in _fences(markdown):
        yield False, "\n".join(lines[position:start])
        yield True, "\n".join(lines[start:end])
        position = end
    yield False, "\n".join(lines[position:])


def _fences(markdown: str) -> list[tuple[int, int]]:
    if "```" not in markdown and "~~~" not in markdown:
        return []
    tokens = _BLOCKS.parse(markdown)
    return [
        (token.map[0], token.map[1])
        for token in tokens
        if token.type == "fence" and token.level == 0 and token.map
    ]


def _closed(fence: str) -> str:
    """A fence without an end would take in whatever follows the page."""
    first, last = fence.lstrip().partition("\n")[0], fence.rpartition("\n")[2].strip()
    marks = first[: len(first) - len(first.lstrip(first[0]))]
    return (
        fence
        if "\n" in fence and last.startswith(marks) and not last.strip(first[0])
        else f"{fence}\n{marks}"
    )


def _clean_prose(text: str) -> str:
    text = _without_elements(_without_comments(_decoded(text)))
    text = with_html_tables(without_links(text))
    shielded = "".join(_shielded_parts(text))
    cleaned = _SHIELDED.sub(
        _unshielded, _CLEANER.clean(shielded).replace("<signature></signature>", "<signature/>")
    )
    return _tidy(_tables_apart(cleaned))


def _tidy(text: str) -> str:
    """No trailing white space but that of a line break, no more than one empty line in a row, and a printed row of
    dashes with a word behind it is no nest of lists."""
    lines = (
        line.rstrip() + ("  " if line.endswith("  ") and line.strip() else "") for line in text.split("\n")
    )
    return re.sub(r"\n{3,}", "\n\n", _DASHES.sub(r"\1\\\2", "\n".join(lines))).strip("\n")


def _decoded(text: str) -> str:
    """Letters and signs spelt as entities, as themselves; those that are markup when decoded stay."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    sign = html.unescape(found[0])
    match sign:
        case "&":
            return found[0] if _ENTITY_AHEAD.match(found.string, found.end()) else sign
        case "<":
            return "&lt;"
        case ">":
            line = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
            return sign if line.strip() else "&gt;"
        case '"' | "'":
            return sign
        case "\u00a0":
            return " "
    return sign if not any(character <= "\u00a0" for character in sign) else found[0]


def _without_comments(text: str) -> str:
    text = re.sub(r"<!doctype[^<>]{0,200}>", "", text, flags=re.IGNORECASE)
    before, mark, rest = text.partition("<!--")
    kept = [before]
    while mark:
        _, end, after = rest.partition("-->")
        if not end:
            kept.append(mark + rest)
            break
        before, mark, rest = after.partition("<!--")
        kept.append(before)
    return "".join(kept)


def _without_elements(text: str) -> str:
    """``text`` without scripts and the like, where the element ends; a lone ``<script>`` is text."""
    for name in DROPPED_WITH_CONTENT:
        if f"</{name}" in text.lower():
            text = _without_element(text, name)
    return text


def _without_element(text: str, name: str) -> str:
    opening, closing = re.compile(rf"<{name}\b[^<>]*>", re.I), re.compile(rf"</{name}\s*>", re.I)
    kept, position = [], 0
    while (start := opening.search(text, position)) and (end := closing.search(text, start.end())):
        kept.append(text[position : start.start()])
        position = end.end()
    return "".join([*kept, text[position:]])


def _shielded_parts(text: str) -> Iterator[str]:
    """The text as HTML: known tags as tags, everything else spelt out."""
    position, depth = 0, 0
    for found in _TAG.finditer(text):
        tag = _tag(found, is_in_table=depth > 0)
        if tag is None:
            continue
        yield html.escape(text[position : found.start()], quote=False)
        yield tag
        depth += {"<table>": 1, "</table>": -min(depth, 1)}.get(tag, 0)
        position = found.end()
    yield html.escape(text[position:], quote=False)


def _tag(found: re.Match[str], *, is_in_table: bool) -> str | None:
    """What comes in place of a tag; None where it is no tag but text of the page."""
    slash, name, rest = found[1], found[2].lower(), found[3]
    if rest.strip(" /\t\n") and name not in TABLE_TAGS and not _ATTRIBUTE.match(rest):
        return None
    if name == "signature":
        return "" if slash else "<signature></signature>" + ("" if rest.endswith("/") else " ")
    if name in TABLE_TAGS and name != "table" and not is_in_table:
        return "" if slash else "  " if name in ("td", "th") else "\n"
    if name in ALLOWED_TAGS:
        return f"</{name}>" if slash else _opening(name, rest)
    if name in _BREAKS:
        return " " if is_in_table else ("\n\n" if slash else _BREAKS[name])
    return "" if name in _VOID or name in _FOREIGN or name in DROPPED_WITH_CONTENT[2:] else None


def _opening(name: str, rest: str) -> str:
    spans = dict(_SPAN.findall(rest)) if name in ("td", "th") else {}
    counts = {key.lower(): min(int(value), MOST_SPAN) for key, value in spans.items()}
    attributes = "".join(f' {key}="{count}"' for key, count in counts.items() if count > 1)
    return f"<{name}{attributes}>" + (f"</{name}>" if rest.endswith("/") and name != "br" else "")


def _unshielded(found: re.Match[str]) -> str:
    if found[1] == "lt":
        return found[0] if _TAG_AHEAD.match(found.string, found.end()) else "<"
    return {"amp": "&", "gt": ">", "nbsp": " "}[found[1]]


def _tables_apart(text: str) -> str:
    """Each table on a line of its own, an empty line around it."""
    parts, start, depth = [], 0, 0
    for edge in _TABLE_EDGE.finditer(text):
        if depth == 0:
            parts.append(text[start : edge.start()])
            start = edge.start()
        depth += -1 if edge[1] else 1
        if depth == 0:
            parts.append(_one_line(text[start : edge.end()]))
            start = edge.end()
    return "\n\n".join(part.strip("\n") for part in [*parts, text[start:]])


def _one_line(table: str) -> str:
    """A table without line breaks; Markdown within cells, which HTML does not know, as tags."""
    flat = _AROUND_CELLS.sub(r"\1", " ".join(table.split()))
    return _BOLD.sub(r"<b>\1</b>", flat) if "<td" in flat or "<th" in flat else ""
