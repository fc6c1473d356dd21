"""Whether this machine's clock and the database server's agree: leases end by the clock of whoever looks at them."""

from __future__ import annotations

import time

from sqlalchemy import Float, cast, extract, func, select

from pipeline.store.database import Database


class PoolClock:
    def __init__(self, database: Database) -> None:
        self._database = database

    def clock_ahead_s(self) -> float:
        """How far this machine's clock is ahead of the database server's; negative where it is behind. SQLite has none
        of its own."""
        with self._database.read() as session:
            if session.get_bind().dialect.name == "sqlite":
                return 0.0
            server_s = session.scalar(select(cast(extract("epoch", func.clock_timestamp()), Float)))
        return 0.0 if server_s is None else time.time() - server_s
