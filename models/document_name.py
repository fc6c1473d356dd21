"""What a document is called: its file's name with the folders before it, ``a/scan.pdf``, below some folder."""

from __future__ import annotations

import unicodedata
from typing import Final

MOST_NAME_BYTES: Final = 1_000
MOST_PART_BYTES: Final = 200
"""Of a folder's or the file's own name, in UTF-8."""

UNSHOWABLE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, halves of characters, and ends of lines, by Unicode's categories."""


TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They turn the text that follows, so that ``fdp.exe`` looks like ``exe.pdf``."""


def last_part(name: str) -> str:
    return name.rpartition("/")[2]


def fault_of_name(name: str) -> str | None:
    """What to do about a name that cannot be taken; None for one that can."""
    parts = name.split("/")
    if name.startswith("/"):
        return "start with a folder or the file, not with /"
    if not all(part.strip() for part in parts):
        return "name every folder and the file; none may be empty"
    if any(part in (".", "..") for part in parts):
        return "leave out . and .."
    if "\\" in name:
        return "put / between folders, and no backslash into their names"
    if not all(map(_is_shown, name)):
        return "leave out control characters and line breaks"
    if len(name.encode()) > MOST_NAME_BYTES or any(len(part.encode()) > MOST_PART_BYTES for part in parts):
        return f"send at most {MOST_NAME_BYTES:,} bytes, and {MOST_PART_BYTES} for each folder and the file"
    return None


def fitted_name(name: str) -> str:
    """One that can be taken, as near to a file's path as may be: an underscore for what cannot be in it, long parts
    cut, and of a path that is too long the parts nearest to the file."""
    parts = [_fitted_part(part) for part in name.split("/") if part]
    while len("/".join(parts).encode()) > MOST_NAME_BYTES:
        del parts[0]
    return "/".join(parts) or "_"


def _fitted_part(part: str) -> str:
    shown = "".join(character if character != "\\" and _is_shown(character) else "_" for character in part)
    fitted = shown.encode()[:MOST_PART_BYTES].decode("utf-8", "ignore")
    return fitted if fitted.strip() and fitted not in (".", "..") else "_"


def _is_shown(character: str) -> bool:
    return unicodedata.category(character) not in UNSHOWABLE and character not in TURNING
