"""Whole numbers and truth values in paths, queries and forms: spelt as JSON has them, and not as else they could be."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator

WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]*)")
TRUTHS: Final = ("true", "false")


def _whole(value: object) -> object:
    """Pydantic would take ``5.0`` and ``1_0`` too."""
    if isinstance(value, str) and not WHOLE.fullmatch(value):
        raise ValueError("write a whole number in digits alone, like 12")
    return value


def _truth(value: object) -> object:
    """Pydantic would take ``yes``, ``on`` and ``1`` too."""
    if isinstance(value, str) and value not in TRUTHS:
        raise ValueError("write true or false")
    return value


AS_DIGITS: Final = BeforeValidator(_whole)
"""Behind an ``int``'s bounds."""

Truth = Annotated[bool, BeforeValidator(_truth)]
