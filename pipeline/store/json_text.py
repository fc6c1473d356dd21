"""JSON as both databases keep it, to the letter."""

from __future__ import annotations

import json
import re
from typing import Final

from models.text import writable

_BACKSLASH_OR_NUL: Final = re.compile(r"(\\\\)|\\u0000")


def json_text(value: object) -> str:
    """JSON proper: NaN and infinity, which JSON does not have, raise ValueError. Text in it is ``writable``: NUL, which
    is spelled here, is a character that PostgreSQL takes and then cannot read."""
    spelled = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    if r"\u0000" in spelled:
        spelled = _BACKSLASH_OR_NUL.sub(lambda found: found[1] or "\ufffd", spelled)
    return writable(spelled)
