"""The words of a cleaned answer without its markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipeline.answers.links import without_targets
from pipeline.answers.tables import table_rows

CELL_GAP: Final = "  "
"""Between the cells of a row."""

MOST_NESTING: Final = 60
"""Of quotes and lists; markdown-it drops what lies deeper, and its own limit is 20."""

_READER: Final = MarkdownIt("commonmark", {"html": True, "maxNesting": MOST_NESTING}).disable(
    ["code", "reference", "link", "image", "autolink"]
)
_TAG: Final = re.compile(r"</?[a-z]+/?>")
_BREAK: Final = re.compile(r"<br>\n?")


def plain_text(markdown: str) -> str:
    """What stands in ``markdown``, cleaned by ``clean_markup``: a line a line, a table's row a line, an empty line
    between blocks. Numbers of lists stay, as they are on the page."""
    blocks = "\n".join(_blocks(_READER.parse(without_targets(markdown))))
    return re.sub(r"\n{3,}", "\n\n", blocks).strip()


def _blocks(tokens: Sequence[Token]) -> Iterator[str]:
    lead = ""
    for token in tokens:
        match token.type:
            case "list_item_open":
                lead += f"{token.info}{token.markup} " if token.info else "- "
            case "inline":
                yield lead + "".join(map(_inline_text, token.children or ()))
                lead = ""
            case "list_item_close" if lead:
                yield lead.rstrip()
                lead = ""
            case "html_block":
                yield _html_text(token.content) + "\n"
            case "fence" | "code_block":
                yield token.content
            case "paragraph_close" | "heading_close" | "bullet_list_close" | "ordered_list_close":
                yield from () if token.hidden else ("",)


def _inline_text(token: Token) -> str:
    match token.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "html_inline":
            return "\n" if token.content == "<br>" else ""
        case "code_inline":
            return token.content.replace("&lt;", "<")
    return token.content


def _html_text(block: str) -> str:
    if block.startswith("<table>"):
        return "\n".join(CELL_GAP.join(cell.text for cell in row).rstrip() for row in table_rows(block))
    return plain_text(_TAG.sub("", _BREAK.sub("\n", block)))
