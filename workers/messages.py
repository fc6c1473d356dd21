"""What the executor and its worker processes say to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from models.document import Document
from models.errors import DoctriageError, DocumentFailed, OutputNotWritable
from models.page import Route
from pipeline.chargeback.entries import Account, Payer
from pipeline.chargeback.price_book import PriceBook
from pipeline.planning.serving_plan import ServingPlan
from pipeline.policy import Policy
from pipeline.settings import Settings

if TYPE_CHECKING:
    from pipeline.page_pipeline import Engines

EngineBuilder = Callable[[Settings], "Engines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """What a worker knows from its start. ``build_engines`` is a function that can be imported by name. ``out_dir`` is
    None where nothing is written."""

    settings: Settings
    policy: Policy
    plan: ServingPlan
    price_book: PriceBook
    out_dir: Path | None
    formats: tuple[str, ...]
    passwords: tuple[str, ...] = field(repr=False)
    build_engines: EngineBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyTask:
    """Say which versions of the engines would read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeTask:
    """Copy the source's bytes and look at them."""

    source_number: int
    path: Path
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    reading_id: int
    document: Document
    page_numbers: tuple[int, ...]
    payer: Payer
    password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask:
    """Write the files of one source whose reading is complete."""

    source_number: int
    source_id: int
    reading_id: int
    document: Document
    name: str
    output_stem: str
    password: str | None = field(repr=False)


Task = IdentifyTask | IntakeTask | ReadTask | WriteTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The worker is up; ``owner`` is the name its leases bear."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    engine_versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeAccepted:
    """``password`` is the one that opened the document."""

    source_number: int
    document: Document
    password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRefused:
    source_number: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesClaimed:
    """The engines are loaded; these pages of the task are this worker's, the others somebody else's."""

    page_numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDone:
    page_number: int
    route: Route
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEscalated:
    """The page is read on the CPU and waits for the VLM."""

    page_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAttemptFailed:
    """``gave_up``: the page is failed for good; else it is pending again."""

    page_number: int
    attempt: int
    code: str
    message: str
    gave_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWritten:
    source_number: int
    failed_pages: int
    outputs: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNotWritten:
    """No files were written, or not all; without a ``refusal`` pages are being read again, so try later."""

    source_number: int
    refusal: DocumentFailed | OutputNotWritable | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """The worker is idle. ``memory_bytes`` is what it keeps resident."""

    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunImpossible:
    """Nothing more can be done on this machine as it is: an engine is missing, the disk is full."""

    error: DoctriageError


Reply = (
    Hello
    | Identified
    | IntakeAccepted
    | IntakeRefused
    | PagesClaimed
    | PageDone
    | PageEscalated
    | PageAttemptFailed
    | SourceWritten
    | SourceNotWritten
    | TaskEnded
    | RunImpossible
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriberSetup:
    """What the process that talks to the VLM knows from its start."""

    settings: Settings
    plan: ServingPlan
    account: Account


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscribeTask:
    """Bring a page that waits for the VLM to its end."""

    reading_id: int
    document: Document
    page_number: int
    password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTranscribed:
    """The page has its final result: the VLM's text, or the CPU's and why."""

    reading_id: int
    page_number: int
    route: Route
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageNotOurs:
    """Somebody else answers for the page."""

    reading_id: int
    page_number: int


TranscriberReply = Hello | PageTranscribed | PageNotOurs | RunImpossible
