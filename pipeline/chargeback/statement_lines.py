"""What the lines of a statement are. Importing this is cheap."""

from __future__ import annotations

from enum import StrEnum


class StatementBy(StrEnum):
    """What the lines of a statement are. ``project`` has one line for all that teams do outside of projects."""

    COST_CENTRE = "cost-centre"
    TEAM = "team"
    PROJECT = "project"
    DOCUMENT = "document"
    MODEL = "model"
    REASON = "reason"
    DAY = "day"
