"""Where a list goes on, as text that means nothing to whoever sends it back."""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Final

from models.errors import RequestInvalid
from workers.api import schema

LARGEST_NUMBER: Final = 2**31 - 1
_PLACE: Final = re.compile(rf"([0-9.e+-]{{1,30}}) ({schema.UPLOAD_ID.strip('^$')})(?: ([0-9]{{1,10}}))?")


def cursor(created_at_s: float, upload_id: str, page_number: int | None = None) -> str:
    text = f"{created_at_s!r} {upload_id}" + ("" if page_number is None else f" {page_number}")
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def place_of(cursor: str) -> tuple[float, str, int | None]:
    """Unix seconds, the document's id, and the page where it has one. Raises RequestInvalid for what is no cursor."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        found = _PLACE.fullmatch(text)
        seconds, page_number = float(found[1] if found else "nan"), int((found and found[3]) or 0)
    except (ValueError, binascii.Error) as error:
        raise _none() from error
    if found is None or not math.isfinite(seconds) or page_number > LARGEST_NUMBER:
        raise _none()
    return seconds, found[2], page_number or None


def _none() -> RequestInvalid:
    return RequestInvalid(
        "the cursor is none; send next_cursor as it came", faults=(("cursor", "is no cursor"),)
    )
