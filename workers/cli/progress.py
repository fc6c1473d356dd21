"""What an ingest shows while it works: a live bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text

from models.page import Route
from workers.cli.printable import printable
from workers.events import (
    DocumentFound,
    DocumentRejectedEvent,
    Event,
    PageAwaitsVlm,
    PageFinished,
    PageGivenUp,
    PagesChosen,
    SourceRenamed,
    SourcesFound,
)

ROUTE_NAMES = {
    Route.TEXT_LAYER: "text layer",
    Route.OCR: "ocr",
    Route.OCR_DEGRADED: "ocr degraded",
    Route.VLM: "vlm",
    Route.BLANK: "blank",
}

NOTICES_SHOWN = 20
"""Pages that failed named while working; the rest are counted, and all of them are in ``pages.jsonl``."""


@dataclass(slots=True)
class Tally:
    """Counts what the events tell."""

    clock: Callable[[], float] = time.monotonic
    started_s: float = field(init=False)
    begun_before_s: float = 0.0
    sources_total: int = 0
    sources_heard_of: set[str] = field(default_factory=set)
    sources_rejected: int = 0
    pages_total: int = 0
    pages_read: int = 0
    pages_from_earlier_run: int = 0
    pages_given_up: int = 0
    routes: Counter[Route] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.started_s = self.clock()

    def add(self, event: Event) -> None:
        if isinstance(event, DocumentFound | DocumentRejectedEvent):
            self.sources_heard_of.add(event.source)
        match event:
            case SourcesFound(count=count, begun_before_s=begun_before_s):
                self.sources_total, self.begun_before_s = count, begun_before_s
            case DocumentRejectedEvent():
                self.sources_rejected += 1
            case DocumentFound(page_count=page_count, same_bytes_as=None):
                self.pages_total += page_count
            case PagesChosen(count=count):
                self.pages_total = count
            case PageFinished(route=route, from_earlier_run=from_earlier_run):
                self._add_page(route, from_earlier_run=from_earlier_run)
            case PageAwaitsVlm(from_earlier_run=from_earlier_run):
                self._add_page(Route.VLM, from_earlier_run=from_earlier_run)
            case PageGivenUp():
                self.pages_given_up += 1
            case _:
                pass

    def _add_page(self, route: Route, *, from_earlier_run: bool) -> None:
        self.routes[route] += 1
        self.pages_from_earlier_run += from_earlier_run
        self.pages_read += not from_earlier_run

    @property
    def is_total_known(self) -> bool:
        """Until every document has been opened the total grows, and a share of it would mislead."""
        return len(self.sources_heard_of) >= self.sources_total

    @property
    def pages_done(self) -> int:
        return self.pages_read + self.pages_from_earlier_run + self.pages_given_up

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self.started_s

    @property
    def pages_per_minute(self) -> float | None:
        """Of the pages read in this run; None before the first."""
        reading_s = self.begun_before_s + self.elapsed_s
        return 60 * self.pages_read / reading_s if self.pages_read and reading_s > 0 else None

    def routes_in_words(self) -> str:
        counts = {name: self.routes[route] for route, name in ROUTE_NAMES.items()}
        counts["failed"] = self.pages_given_up
        return ", ".join(f"{name} {pages}" for name, pages in counts.items() if pages)

    def pages_in_words(self) -> str:
        if self.is_total_known:
            return f"{self.pages_done}/{self.pages_total} pages"
        return (
            f"{self.pages_done}/? pages, {len(self.sources_heard_of)}/{self.sources_total} documents opened"
        )

    def rate_in_words(self) -> str:
        return "" if self.pages_per_minute is None else f"{self.pages_per_minute:.1f} pages/min"

    def in_words(self) -> str:
        rate = "" if self.pages_per_minute is None else f", {self.rate_in_words()}"
        rejected = f", {self.sources_rejected} not read" if self.sources_rejected else ""
        routes = f" ({self.routes_in_words()})" if self.routes else ""
        return f"{self.pages_in_words()}{rate}{rejected}{routes}"


class ProgressDisplay(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def on_event(self, event: Event) -> None: ...


def progress_display(console: Console) -> ProgressDisplay:
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveProgress(console)
    return PlainProgress(console)


class Notices:
    """Prints what went wrong with a page, as it happens, up to ``NOTICES_SHOWN`` lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._count = 0

    def show(self, event: Event) -> None:
        notice = notice_of(event)
        if notice is None:
            return
        self._count += 1
        if self._count <= NOTICES_SHOWN:
            self._console.print(Text(notice, style="yellow"))
        elif self._count == NOTICES_SHOWN + 1:
            self._console.print(Text("more failures are counted, not shown", style="yellow"))


def notice_of(event: Event) -> str | None:
    """The line for an event that no table at the end tells."""
    match event:
        case PageGivenUp(source=source, page_number=page_number, message=message):
            return f"failed: {printable(source)}, page {page_number}: {printable(message)}"
        case SourceRenamed(source=source, wanted=wanted):
            return f"renamed: {printable(wanted)} is written as {printable(source)}"
        case _:
            return None


class PlainProgress:
    """A line after ``first_s``, then each time the run is a tenth longer, so a night gives some tens."""

    def __init__(
        self, console: Console, *, first_s: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._notices = Notices(console)
        self._tally = Tally(clock=clock)
        self._next_line_s = first_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tally.pages_total or self._tally.sources_rejected:
            self._print_line()

    def on_event(self, event: Event) -> None:
        self._tally.add(event)
        self._notices.show(event)
        if self._tally.pages_done and self._tally.elapsed_s >= self._next_line_s:
            self._print_line()
            self._next_line_s = max(self._tally.elapsed_s * 1.1, self._tally.elapsed_s + 5.0)

    def _print_line(self) -> None:
        self._console.print(Text(self._tally.in_words()))


class LiveProgress:
    """A bar with pages done and total and pages a minute, and the routes below it."""

    def __init__(self, console: Console) -> None:
        self._tally = Tally()
        self._notices = Notices(console)
        self._progress = _PagesProgress(self._tally, console)
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_event(self, event: Event) -> None:
        self._tally.add(event)
        self._notices.show(event)
        total = self._tally.pages_total if self._tally.is_total_known else None
        self._progress.update(self._task, completed=self._tally.pages_done, total=total)


class _PagesProgress(Progress):
    def __init__(self, tally: Tally, console: Console) -> None:
        self._tally = tally
        super().__init__(
            BarColumn(bar_width=None),
            _TallyColumn(tally.pages_in_words),
            _TallyColumn(tally.rate_in_words),
            TimeRemainingColumn(compact=True),
            console=console,
            expand=True,
            refresh_per_second=4,
        )

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if self._tally.routes:
            yield Text(self._tally.routes_in_words(), style="cyan", overflow="ellipsis", no_wrap=True)


class _TallyColumn(ProgressColumn):
    def __init__(self, words: Callable[[], str]) -> None:
        super().__init__()
        self._words = words

    def render(self, task: Task) -> Text:
        return Text(self._words(), style="cyan", no_wrap=True)
