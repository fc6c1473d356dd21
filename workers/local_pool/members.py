"""One place in the embedded pool and the process that fills it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final, assert_never

from models.pool import Queue
from workers.cpus import ONE_THREAD
from workers.local_pool.lives import live
from workers.local_pool.roles import PoolSetup, Ready, Role, TurnBegun, TurnEnded, Word, Worn
from workers.pool import environment, interrupts_held_back, kill_group

FIRST_PAUSE_S: Final = 0.5
MOST_PAUSE_S: Final = 30.0
"""Before the process that takes the place of one that was lost soon after its start; twice as long each time."""

SOON_S: Final = 60.0
LAST_WORDS_S: Final = 1.0


@dataclass(slots=True, eq=False)
class Member:
    """``limits_s`` say how long a turn of each queue may take. Times are on the monotonic clock."""

    role: Role
    place: str
    setup: PoolSetup
    limits_s: Mapping[Queue, float]
    owner: str | None = None
    start_at_s: float = 0.0
    is_worn: bool = False
    process: BaseProcess | None = None
    connection: Connection | None = None
    _began_at_s: float = 0.0
    _losses_in_a_row: int = 0
    _deadlines_s: dict[int, float] = field(default_factory=dict)

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=live,
            args=(self.role, theirs, self.setup, self.place),
            name=f"doctriage-{self.place}",
            daemon=True,
        )
        with environment(ONE_THREAD), interrupts_held_back():
            process.start()
        theirs.close()
        self.process, self.connection = process, ours
        self.owner, self.is_worn, self._began_at_s = None, False, time.monotonic()

    def hear(self) -> bool:
        """All that it has said; False where it has hung up."""
        assert self.connection is not None
        try:
            while self.connection.poll():
                self._note(self.connection.recv())
        except (EOFError, OSError):
            return False
        return True

    def deadline_s(self) -> float | None:
        """When its longest turn has taken too long."""
        return min(self._deadlines_s.values(), default=None)

    def tell_to_stop(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def end(self, *, patience_s: float = LAST_WORDS_S) -> int | None:
        """Its exit code; after its patience it is killed, with all the programs that it runs."""
        assert self.process is not None
        assert self.connection is not None
        self.process.join(patience_s)
        kill_group(self.process)
        self.process.join()
        exit_code = self.process.exitcode
        self.connection.close()
        self.process = self.connection = None
        self._deadlines_s.clear()
        return exit_code

    def pause_after(self, *, was_lost: bool) -> float:
        """How long its place stays empty."""
        lived_s = time.monotonic() - self._began_at_s
        if not was_lost:
            self._losses_in_a_row = 0
            return 0.0
        self._losses_in_a_row = 1 if lived_s > SOON_S else self._losses_in_a_row + 1
        return min(MOST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self._losses_in_a_row - 1))

    def _note(self, word: Word) -> None:
        match word:
            case Ready():
                self.owner = word.owner
            case TurnBegun():
                self._deadlines_s[word.number] = time.monotonic() + self.limits_s[word.queue]
            case TurnEnded():
                self._deadlines_s.pop(word.number, None)
            case Worn():
                self.is_worn = True
            case _:
                assert_never(word)
