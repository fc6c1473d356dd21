"""The process that talks to the VLM: it takes escalated pages, many at a time, and brings each to its end.

Results go from here to the database; the executor only hears about them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from multiprocessing.connection import Connection
from typing import Final

from models.errors import DoctriageError
from pipeline.blobs import BlobStore
from pipeline.store import Store, connect_store
from workers.adaptive_limit import AdaptiveLimit
from workers.bootstrap import build_vlm_engine
from workers.child_process import begin_child
from workers.circuit_breaker import CircuitBreaker
from workers.messages import (
    Hello,
    PageNotOurs,
    RunImpossible,
    TranscriberReply,
    TranscriberSetup,
    TranscribeTask,
)
from workers.owner import current_owner
from workers.vllm_metrics import VllmMetricsReader
from workers.vlm_admission import VlmAdmission, watch
from workers.vlm_pages import VlmPages

PAGES_AHEAD: Final = 8
"""Pages drawn and fitted beyond those that are being answered, so that the next ones are ready when several answers
come at once. Each takes about half a megabyte."""

LEASE_S: Final = 86_400.0
"""A page's calls, pauses and turns together; a process that is gone gives its pages back at once."""


def talk_to_vlm(connection: Connection, setup: TranscriberSetup) -> None:
    """The whole life of the process; it is killed when it is not needed any more, or its parent is gone."""
    begin_child(setup.settings)
    owner = current_owner()
    with contextlib.closing(connect_store(setup.settings.home, setup.settings.database_url)) as store:
        connection.send(Hello(owner=owner))
        try:
            asyncio.run(Transcriber(connection, setup, store, owner).run())
        except* DoctriageError as group:
            connection.send(RunImpossible(error=_first_of(group)))
        except* (BrokenPipeError, ConnectionResetError):
            pass  # the executor is gone, and with it whoever wants an answer


class Transcriber:
    """``run`` takes pages from the connection for as long as the process lives."""

    def __init__(self, connection: Connection, setup: TranscriberSetup, store: Store, owner: str) -> None:
        self._connection = connection
        self._setup = setup
        self._plan = setup.plan
        self._store = store
        self._owner = owner
        self._inbox: asyncio.Queue[TranscribeTask] = asyncio.Queue()

    async def run(self) -> None:
        """Raises what makes going on impossible, in a group."""
        settings = self._setup.settings
        engine = build_vlm_engine(settings.vlm, self._plan)
        reader = VllmMetricsReader(str(settings.vlm.url))
        admission = VlmAdmission(AdaptiveLimit(self._plan.concurrency), CircuitBreaker())
        pages = VlmPages(
            settings=settings,
            plan=self._plan,
            store=self._store,
            blobs=BlobStore(settings.home, settings.blobs),
            owner=self._owner,
            engine=engine,
            admission=admission,
        )
        threading.Thread(
            target=self._receive, args=(asyncio.get_running_loop(),), name="receive", daemon=True
        ).start()
        async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            stack.push_async_callback(engine.close)
            stack.push_async_callback(reader.close)
            group.create_task(watch(reader, admission))
            for _ in range(self._plan.concurrency + PAGES_AHEAD):
                group.create_task(self._serve(pages))

    def _receive(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own, as a connection cannot be awaited."""
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                task: TranscribeTask = self._connection.recv()
                loop.call_soon_threadsafe(self._inbox.put_nowait, task)

    async def _serve(self, pages: VlmPages) -> None:
        while True:
            task = await self._inbox.get()
            escalated = self._store.transcriptions.claim_page(
                task.reading_id, task.page_number, owner=self._owner, lease_s=LEASE_S
            )
            if escalated is None:
                reply: TranscriberReply = PageNotOurs(
                    reading_id=task.reading_id, page_number=task.page_number
                )
            else:
                reply = await pages.bring_to_end(task, escalated, self._setup.account)
            self._connection.send(reply)


def _first_of(group: BaseExceptionGroup[DoctriageError]) -> DoctriageError:
    first = group.exceptions[0]
    return first if isinstance(first, DoctriageError) else _first_of(first)
