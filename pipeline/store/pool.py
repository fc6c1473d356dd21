"""The pool of workers as the database has it: submissions, claims, progress and repairs."""

from __future__ import annotations

from pipeline.store.pool_claims import PoolClaims
from pipeline.store.pool_progress import PoolProgress
from pipeline.store.pool_submissions import PoolSubmissions


class PoolStore(PoolSubmissions, PoolClaims, PoolProgress):
    """Each part is described where it is written."""
