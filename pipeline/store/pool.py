"""The pool of workers as the database has it."""

from __future__ import annotations

from pipeline.store.pool_claims import PoolClaims
from pipeline.store.pool_clock import PoolClock
from pipeline.store.pool_dead import PoolDeadPages
from pipeline.store.pool_progress import PoolProgress
from pipeline.store.pool_repair import PoolRepair
from pipeline.store.pool_submissions import PoolSubmissions


class PoolStore(PoolSubmissions, PoolClaims, PoolProgress, PoolRepair, PoolDeadPages, PoolClock):
    """Each part is described where it is written: submissions from their beginning to their end, claims and what
    becomes of them, progress, repairs, pages that failed, and the clock."""
