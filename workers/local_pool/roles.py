"""What the processes of the embedded pool are, and what they say to the one that keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.synchronize import Semaphore
from pathlib import Path

from models.pool import Queue
from workers.cluster.deployment import Deployment
from workers.local_pool.wakening import LocalTickets


class Role(StrEnum):
    """A reader takes in, reads and assembles; the transcriber calls the VLM; the keeper looks after all of it."""

    READER = "reader"
    TRANSCRIBER = "transcriber"
    KEEPER = "keeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSetup:
    """What a process knows from its start. ``losses`` wakes the keeper. ``metrics_folder`` is where they count."""

    deployment: Deployment
    tickets: LocalTickets
    losses: Semaphore
    metrics_folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """It is at work, and its leases bear this name."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBegun:
    number: int
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Worn:
    """It has read enough, and ends for a fresh one."""


Word = Ready | TurnBegun | TurnEnded | Worn
