"""How many tokens a transcript takes, where nobody has counted them."""

from __future__ import annotations

from typing import Final

CHARACTERS_PER_TOKEN: Final = 3
"""English has four, tables and other scripts fewer."""


def estimated_answer_tokens(character_count: int) -> int:
    return -(-character_count // CHARACTERS_PER_TOKEN)
