"""The pool goes by the clocks of its machines: by when a lease ends, and when a submitter was last seen."""

from __future__ import annotations

from typing import Final

from models.errors import SettingsError
from pipeline.store import PoolStore

SHARE_OF_LEASE: Final = 0.5
"""A lease is renewed when a third of it has passed."""

SUBMITTER_LIMIT_S: Final = 60.0
"""A submitter that was not seen for two minutes is taken to be gone."""


def require_clock_for_leases(pool: PoolStore, *, lease_s: float) -> None:
    """Raises SettingsError where this machine's clock would have others take its work from it, or it theirs."""
    _require(pool, limit_s=SHARE_OF_LEASE * lease_s)


def require_clock_for_submitting(pool: PoolStore) -> None:
    """Raises SettingsError where the pool would take this machine to be gone."""
    _require(pool, limit_s=SUBMITTER_LIMIT_S)


def _require(pool: PoolStore, *, limit_s: float) -> None:
    ahead_s = pool.clock_ahead_s()
    if abs(ahead_s) > limit_s:
        words = "ahead of" if ahead_s > 0 else "behind"
        raise SettingsError(
            f"this machine's clock is {abs(ahead_s):,.0f} s {words} the database server's, and at most "
            f"{limit_s:,.0f} s are allowed; set both by NTP (timedatectl set-ntp true) and start again"
        )
