"""HTML to read in a browser: one file, nothing in it runs and nothing is fetched."""

from __future__ import annotations

import re
from typing import Final, TextIO

import nh3
from markdown_it import MarkdownIt

from models.page import Route
from pipeline.exports.document import Json, Pages
from pipeline.exports.markup import escaped
from pipeline.exports.page_parts import failure_note, is_failed, language_of
from pipeline.outputs import reasons_in_words

MOST_NESTING: Final = 60
UNKNOWN_LANGUAGE: Final = "und"
MARKS: Final = frozenset({"handwriting", "stamp", "signature", "figure"})

_TABLE_TAGS: Final = {"table", "caption", "thead", "tbody", "tr", "td", "th"}
_TEXT_TAGS: Final = {"b", "i", "u", "s", "strong", "em", "sup", "sub", "br", "code", "span"}
_BLOCK_TAGS: Final = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr"}
_SPANS: Final = {"rowspan", "colspan"}

_READER: Final = MarkdownIt("commonmark", {"html": True, "maxNesting": MOST_NESTING}).disable(
    ["link", "image", "autolink", "reference"]
)
_CLEANER: Final = nh3.Cleaner(
    tags=_TABLE_TAGS | _TEXT_TAGS | _BLOCK_TAGS,
    attributes={"*": set(), "td": _SPANS, "th": _SPANS, "ol": {"start"}},
    allowed_classes={"span": set(MARKS)},
    link_rel=None,
)
_MARK: Final = re.compile(rf"<(/?)({'|'.join(sorted(MARKS))})\s*(/?)>")

_STYLE: Final = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid #bbb; margin-top: 2rem; }
p, li, td, th, h1, h2, h3, h4, h5, h6 { unicode-bidi: plaintext; text-align: start; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { border: 1px solid #bbb; padding: .2rem .5rem; vertical-align: top; }
pre { white-space: pre-wrap; }
.page-number { color: #555; font-size: .85rem; }
.note { background: #fff3cd; border-left: 4px solid #b58900; padding: .5rem .75rem; }
.handwriting { font-style: italic; }
.stamp, .figure { border: 1px dashed #777; padding: 0 .2rem; }
"""


def write_html(stream: TextIO, header: Json, pages: Pages) -> None:
    """A section a page, a page at a time."""
    source = escaped(header["source"])
    stream.write(
        f'<!DOCTYPE html>\n<html lang="{UNKNOWN_LANGUAGE}">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="doctriage">\n<title>{source}</title>\n<style>{_STYLE}</style>\n</head>\n'
        f'<body data-document-id="{header["document_id"]}">\n<main>\n'
    )
    for page in pages:
        stream.write(_section(page))
    stream.write("</main>\n</body>\n</html>\n")


def _section(page: Json) -> str:
    number = page["page_number"]
    note = _note(page)
    parts = [
        f'<section id="page-{number}" aria-label="Page {number}"{_attributes(page)}>',
        f'<p class="page-number" lang="en">Page {number}</p>',
        "" if note is None else f'<p class="note" role="note" lang="en">{escaped(note)}</p>',
        page_html(page["markdown"]).rstrip(),
        "</section>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _attributes(page: Json) -> str:
    named = {"data-state": page["state"], "data-route": page["route"], "lang": language_of(page)}
    if is_failed(page):
        named["data-error"] = page["error"]["code"]
    else:
        named["data-reasons"] = reasons_in_words(page) or None
    if page["degraded"] is not None:
        named["data-degraded"] = page["degraded"]["code"]
    return "".join(f' {name}="{escaped(value)}"' for name, value in named.items() if value is not None)


def _note(page: Json) -> str | None:
    """What whoever reads the page has to know of it."""
    if is_failed(page):
        return failure_note(page)
    if page["route"] == Route.OCR_DEGRADED:
        why = "" if page["degraded"] is None else f" ({page['degraded']['message']})"
        return (
            f"Page {page['page_number']} needs a vision-language model and did not get it{why}: "
            "its text may be wrong or incomplete."
        )
    return None


def page_html(markdown: str) -> str:
    """Sanitised HTML of a page's Markdown. Links and pictures are text; handwriting and the like are spans with a class
    of that name."""
    return _CLEANER.clean(_MARK.sub(_span, _READER.render(markdown)))


def _span(mark: re.Match[str]) -> str:
    closing, name, is_empty = mark.groups()
    if closing:
        return "</span>"
    return f'<span class="{name}">' + (f"[{name}]</span>" if is_empty else "")
