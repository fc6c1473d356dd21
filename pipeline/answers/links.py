"""Links and pictures in Markdown: none that runs or fetches anything is left."""

from __future__ import annotations

import html
import re
from typing import Final

SAFE_SCHEMES: Final = frozenset({"http", "https", "mailto", "tel"})
DANGEROUS_SCHEMES: Final = frozenset({"javascript", "vbscript", "data", "file", "blob"})

_TARGET: Final = (
    r"\(\s*(<[^<>\n]*>|[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)
_PICTURE: Final = re.compile(r"!\[([^\[\]\n]{0,500})\]" + _TARGET)
_LINK: Final = re.compile(r"\[([^\[\]]{0,500})\]" + _TARGET)
_OPEN_TARGET: Final = re.compile(r"(\\*)(\]\(\s*(<[^<>\n]{0,200}|[^\s()<>]{0,200}))")
_DEFINITION: Final = re.compile(r"(\\*)(\]:)")
_FOOTNOTE: Final = re.compile(r"(?m)^(\[\^[\w-]{1,20})\\\]:(?=[ \t]+(\S{1,200}))")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):")
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")


def without_links(markdown: str) -> str:
    """Pictures become ``<figure>``, their address goes; so do addresses that would run something. Links to the web
    and footnotes stay. Whatever else Markdown would make a link or a picture of is escaped, and stays as text."""
    if not any(sign in markdown for sign in ("](", "]:", "![")):
        return markdown
    markdown = _PICTURE.sub(r"<figure>\1</figure>", markdown)
    markdown = _LINK.sub(
        lambda found: found[1] if _scheme(found[2]) in DANGEROUS_SCHEMES else found[0], markdown
    )
    markdown = _OPEN_TARGET.sub(lambda found: found[0] if _is_safe(found[3]) else _escaped(found), markdown)
    markdown = _DEFINITION.sub(_escaped, markdown.replace("![", "!\\["))
    return _FOOTNOTE.sub(lambda found: f"{found[1]}]:" if _is_safe(found[2]) else found[0], markdown)


def without_targets(markdown: str) -> str:
    """``markdown`` with the texts of its links in place of the links."""
    return _LINK.sub(lambda found: found[1] if _scheme(found[2]) in SAFE_SCHEMES else found[0], markdown)


def _escaped(found: re.Match[str]) -> str:
    """The bracket behind the backslashes of group 1 escaped, unless it is."""
    return found[0] if len(found[1]) % 2 else f"{found[1]}\\{found[2]}"


def _is_safe(target: str) -> bool:
    return _scheme(target) in SAFE_SCHEMES | {None}


def _scheme(target: str) -> str | None:
    """A link's scheme as a browser sees it: entities, escapes, spaces and control characters do not hide it."""
    plain = _ESCAPE.sub(r"\1", html.unescape(target)).strip("<> ").lower()
    found = _SCHEME.match("".join(sign for sign in plain if sign > " "))
    return found[1] if found else None
