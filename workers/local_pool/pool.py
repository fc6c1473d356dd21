"""The embedded pool: its processes, kept at work by a thread of the server."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final

import structlog

from models.errors import StoreUnavailable, WorkerCrashed
from pipeline.store import connect_store
from workers.cluster.deployment import Deployment
from workers.cpus import usable_cpus
from workers.local_pool.members import Member
from workers.local_pool.roles import PoolSetup, Role
from workers.local_pool.wakening import LocalTickets, local_tickets
from workers.owner import current_owner
from workers.scratch import FOLDER, SLASH
from workers.task_limits import task_limits

LOOK_EVERY_S: Final = 1.0
STOP_PATIENCE_S: Final = 5.0
"""What a process that is told to stop has to end the page that it is at."""

log = structlog.get_logger()


class LocalPool:
    """A process that dies, or whose work takes longer than the settings allow, is replaced; what it held is taken back
    by the keeper. ``tickets`` wake the readers."""

    def __init__(self, deployment: Deployment, *, on_failure: Callable[[], None] = lambda: None) -> None:
        context = multiprocessing.get_context("spawn")
        self.tickets: LocalTickets = local_tickets(context)
        self.has_failed = False
        self._on_failure = on_failure
        self._deployment = deployment
        self.metrics_folder = _metrics_folder(deployment.settings.home)
        self._setup = PoolSetup(
            deployment=deployment,
            tickets=self.tickets,
            losses=context.Semaphore(0),
            metrics_folder=self.metrics_folder,
        )
        self._members = tuple(self._new_members())
        self._stopping = threading.Event()
        self._wake, self._wakes = multiprocessing.Pipe(duplex=False)
        self._thread = threading.Thread(target=self._keep_at_work, name="local-pool", daemon=True)

    def start(self) -> None:
        shutil.rmtree(self.metrics_folder, ignore_errors=True)
        self.metrics_folder.mkdir(mode=0o700, parents=True)
        self._thread.start()

    def stop(self) -> None:
        """Within seconds: what is not read by then is given back, and uncharged."""
        self._stopping.set()
        self._wakes.send(None)
        self._thread.join()
        shutil.rmtree(self.metrics_folder, ignore_errors=True)

    def at_work(self, role: Role) -> int:
        """How many processes of that role are ready for work."""
        return sum(member.owner is not None for member in self._members if member.role is role)

    def _new_members(self) -> Iterator[Member]:
        settings = self._deployment.settings
        roles = [Role.KEEPER, *[Role.READER] * (settings.executor.jobs or usable_cpus())]
        if settings.vlm.is_configured:
            roles.append(Role.TRANSCRIBER)
        limits = {queue: limit.longest_s for queue, limit in task_limits(settings).items()}
        for number, role in enumerate(roles):
            yield Member(
                role=role,
                place=f"{role}-{number}",
                setup=self._setup,
                limits_s=limits,
            )

    def _keep_at_work(self) -> None:
        """A pool that nobody keeps reads nothing: whoever has it is told."""
        try:
            while not self._stopping.is_set():
                self._look()
        except Exception:
            self.has_failed = True
            self._on_failure()
            log.exception("pool_failed")
        finally:
            self._end_all()

    def _look(self) -> None:
        now_s = time.monotonic()
        for member in self._members:
            if member.process is None and member.start_at_s <= now_s:
                member.start()
        for member in self._heard_from():
            if not member.hear():
                self._replace(member, "died")
        now_s = time.monotonic()
        for member in self._members:
            deadline_s = member.deadline_s()
            if member.process is not None and deadline_s is not None and deadline_s < now_s:
                self._replace(member, "stalled", patience_s=0)

    def _heard_from(self) -> Iterator[Member]:
        by_connection = {one.connection: one for one in self._members if one.connection is not None}
        for connection in wait([*by_connection, self._wake], LOOK_EVERY_S):
            if isinstance(connection, Connection) and connection in by_connection:
                yield by_connection[connection]

    def _replace(self, member: Member, how: str, *, patience_s: float = 1.0) -> None:
        owner, is_worn = member.owner, member.is_worn
        exit_code = member.end(patience_s=patience_s)
        member.owner = None
        pause_s = member.pause_after(was_lost=not is_worn)
        member.start_at_s = time.monotonic() + pause_s
        if is_worn:
            log.info("process_replaced", place=member.place, owner=owner)
            return
        log.warning("process_lost", place=member.place, owner=owner, how=how, exit_code=exit_code)
        self._setup.losses.release()

    def _end_all(self) -> None:
        running = [member for member in self._members if member.process is not None]
        for member in running:
            member.tell_to_stop()
        deadline_s = time.monotonic() + STOP_PATIENCE_S
        owners = []
        for member in running:
            member.hear()
            owner, member.owner = member.owner, None
            if member.end(patience_s=max(0.0, deadline_s - time.monotonic())) != 0 and owner is not None:
                owners.append(owner)
        self._give_back(owners)

    def _give_back(self, owners: list[str]) -> None:
        """What those held who had to be killed. A call to the VLM that was under way is booked by the next keeper."""
        settings = self._deployment.settings
        try:
            with closing(connect_store(settings.home, settings.database_url)) as store:
                for owner in owners:
                    store.pool.give_back(owner)
        except StoreUnavailable as error:
            log.warning("not_given_back", owners=owners, reason=str(error))


@contextmanager
def running_pool(deployment: Deployment) -> Iterator[LocalPool]:
    """Raises ``WorkerCrashed`` in the end where it ended before it was told to."""
    pool = LocalPool(deployment, on_failure=_end_server)
    pool.start()
    try:
        yield pool
    finally:
        pool.stop()
        if pool.has_failed:
            raise WorkerCrashed(
                "the embedded pool ended by itself; the log says why, and starting again goes on"
            )


def _end_server() -> None:
    """It would take documents, and none would be read."""
    os.kill(os.getpid(), signal.SIGTERM)


def _metrics_folder(home: Path) -> Path:
    return home / FOLDER / current_owner().replace("/", SLASH) / "metrics"
