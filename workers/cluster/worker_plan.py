"""What a worker of the pool serves, and how it does: processes for work on the CPU, threads for calls of the VLM."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from models.errors import SettingsError
from models.pool import Queue
from pipeline.settings import Settings
from workers.cpus import usable_cpus

DEFAULT_QUEUES: Final = (Queue.INTAKE, Queue.OCR, Queue.ASSEMBLE)
NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


class PoolKind(StrEnum):
    """Celery's own names."""

    PROCESSES = "prefork"
    THREADS = "threads"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """``node`` is the name that the worker has among the others."""

    queues: tuple[Queue, ...]
    concurrency: int
    kind: PoolKind
    node: str

    @property
    def reads_documents(self) -> bool:
        """It needs the engines."""
        return Queue.INTAKE in self.queues or Queue.OCR in self.queues


def plan_worker(
    settings: Settings, queues: Sequence[Queue], *, concurrency: int | None = None, name: str | None = None
) -> WorkerPlan:
    """Raises SettingsError for what does not go together, and a name that is none."""
    chosen = tuple(dict.fromkeys(queues))
    if not chosen:
        raise SettingsError(f"--queues names no queue; there are {', '.join(Queue)}")
    if name is not None and not NAME.fullmatch(name):
        raise SettingsError(f"--name {name!r}: write it with letters, digits, dots, dashes and underscores")
    calls_vlm = Queue.VLM in chosen
    if calls_vlm:
        _require_alone(chosen)
        if not settings.vlm.is_configured:
            raise SettingsError(
                "--queues vlm: no VLM is configured; set DOCTRIAGE_VLM__URL to its OpenAI-compatible API"
            )
    return WorkerPlan(
        queues=chosen,
        concurrency=concurrency or _default_concurrency(settings, chosen),
        kind=PoolKind.THREADS if calls_vlm else PoolKind.PROCESSES,
        node=f"{name or _unused_name(chosen)}@{socket.gethostname()}",
    )


def _require_alone(queues: tuple[Queue, ...]) -> None:
    if len(queues) > 1:
        others = ",".join(queue for queue in queues if queue is not Queue.VLM)
        raise SettingsError(
            f"--queues {','.join(queues)}: a worker of vlm waits on threads, and the others work in processes; start "
            f"two workers, one with --queues vlm and one with --queues {others}"
        )


def _default_concurrency(settings: Settings, queues: tuple[Queue, ...]) -> int:
    """Calls of the VLM in flight are bounded by the plan. A few more pages are drawn meanwhile."""
    if Queue.VLM in queues:
        from pipeline.planning.configured import load_plan
        from workers.transcriber import PAGES_AHEAD

        return load_plan(settings.vlm).concurrency + PAGES_AHEAD
    return usable_cpus() if Queue.OCR in queues else 1


def _unused_name(queues: tuple[Queue, ...]) -> str:
    """Containers of one image often share their process number, and sometimes their host's name."""
    return f"{'-'.join(queues)}-{os.getpid()}-{secrets.token_hex(3)}"
