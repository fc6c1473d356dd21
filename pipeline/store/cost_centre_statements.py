"""Which rows are a cost centre's own, or of one of its projects."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func, or_
from sqlalchemy.orm import InstrumentedAttribute


def is_paid_by(
    column: InstrumentedAttribute[str] | InstrumentedAttribute[str | None], cost_centre: str
) -> ColumnElement[bool]:
    """A team pays for its projects too. Compared letter by letter: LIKE passes over their case on SQLite, and ``crane``
    is not ``Crane``."""
    below = f"{cost_centre}/"
    return or_(column == cost_centre, func.substr(column, 1, len(below)) == below)
