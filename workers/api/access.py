"""Who asks, and what they may."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from pipeline.chargeback.cost_centres import DEFAULT_COST_CENTRE

ALL_SCOPES = frozenset({"submit", "read", "admin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """``key_id`` is None for whoever came without a key."""

    key_id: int | None
    cost_centre: str
    scopes: frozenset[str]
    is_admin: bool


def caller(request: Request) -> Caller:
    """A dependency: whoever reaches the server may do everything."""
    return Caller(key_id=None, cost_centre=DEFAULT_COST_CENTRE, scopes=ALL_SCOPES, is_admin=True)
