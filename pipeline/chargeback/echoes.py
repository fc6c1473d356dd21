"""What was given, repeated in the message that refuses it."""

from __future__ import annotations

from typing import Final

MOST_CHARACTERS: Final = 80


def echoed(given: object) -> str:
    """As Python writes it, so that nothing in it acts on a terminal; shortened to 80 characters."""
    text = repr(given[: MOST_CHARACTERS + 1] if isinstance(given, str) else given)
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
