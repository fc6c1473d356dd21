"""Where a process of the embedded pool begins. What it needs is imported there: the server, which spawns it, reads
nothing."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import assert_never

from workers.local_pool.roles import PoolSetup, Role


def live(role: Role, connection: Connection, setup: PoolSetup, place: str) -> None:
    """The whole life of a process."""
    match role:
        case Role.READER:
            from workers.local_pool.reader import read

            read(connection, setup, place)
        case Role.TRANSCRIBER:
            from workers.local_pool.transcriber import transcribe

            transcribe(connection, setup, place)
        case Role.KEEPER:
            from workers.local_pool.keeper import keep

            keep(connection, setup, place)
        case _:
            assert_never(role)
