"""A piece of work in a trace, whoever keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Value = str | int | float | Sequence[str] | Sequence[int]
Attributes = Mapping[str, Value]


class Span(Protocol):
    def set(self, attributes: Attributes) -> None: ...

    def fail(self, error_type: str) -> None:
        """The span ends in this error, by its code."""
        ...
