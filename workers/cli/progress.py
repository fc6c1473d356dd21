"""What an ingest shows while it works: a live bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from models.page import Route
from workers.cli.printable import printable
from workers.events import (
    DocumentFound,
    DocumentRejectedEvent,
    Event,
    PageFinished,
    PageGivenUp,
    SourceRenamed,
)

ROUTE_NAMES = {
    Route.TEXT_LAYER: "text layer",
    Route.OCR: "ocr",
    Route.OCR_DEGRADED: "ocr degraded",
    Route.VLM: "vlm",
    Route.BLANK: "blank",
}

NOTICES_SHOWN = 20
"""Failures named while working; the rest are counted, and all of them are in ``failures.jsonl``."""


@dataclass(slots=True)
class Tally:
    """Counts what the events tell."""

    clock: Callable[[], float] = time.monotonic
    started_s: float = field(init=False)
    pages_total: int = 0
    pages_read: int = 0
    pages_from_earlier_run: int = 0
    pages_given_up: int = 0
    routes: Counter[Route] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.started_s = self.clock()

    def add(self, event: Event) -> None:
        match event:
            case DocumentFound(page_count=page_count, same_bytes_as=None):
                self.pages_total += page_count
            case PageFinished(route=route, from_earlier_run=from_earlier_run):
                self.routes[route] += 1
                self.pages_from_earlier_run += from_earlier_run
                self.pages_read += not from_earlier_run
            case PageGivenUp():
                self.pages_given_up += 1
            case _:
                pass

    @property
    def pages_done(self) -> int:
        return self.pages_read + self.pages_from_earlier_run + self.pages_given_up

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self.started_s

    @property
    def pages_per_minute(self) -> float | None:
        """Of the pages read in this run; None before the first."""
        return 60 * self.pages_read / self.elapsed_s if self.pages_read and self.elapsed_s > 0 else None

    def routes_in_words(self) -> str:
        counts = {name: self.routes[route] for route, name in ROUTE_NAMES.items()}
        counts["failed"] = self.pages_given_up
        return ", ".join(f"{name} {pages}" for name, pages in counts.items() if pages)

    def in_words(self) -> str:
        rate = "" if self.pages_per_minute is None else f", {self.pages_per_minute:.1f} pages/min"
        routes = f" ({self.routes_in_words()})" if self.routes else ""
        return f"{self.pages_done}/{self.pages_total} pages{rate}{routes}"


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
    """Prints what went wrong, as it happens, up to ``NOTICES_SHOWN`` lines."""

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
    """The line for an event that a reader must know of at once."""
    match event:
        case DocumentRejectedEvent(source=source, message=message):
            return f"rejected: {_with_source(source, message)}"
        case PageGivenUp(source=source, page_number=page_number, message=message):
            return f"failed: {printable(source)}, page {page_number}: {printable(message)}"
        case SourceRenamed(source=source, wanted=wanted):
            return f"renamed: {printable(wanted)} is written as {printable(source)}"
        case _:
            return None


def _with_source(source: str, message: str) -> str:
    """Most messages begin with the name of the file; it is said once."""
    source, message = printable(source), printable(message)
    return message if message.startswith(source) else f"{source}: {message}"


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
        if self._tally.pages_total:
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
        self._task = self._progress.add_task("", total=0)

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
        self._progress.update(self._task, completed=self._tally.pages_done, total=self._tally.pages_total)


class _PagesProgress(Progress):
    def __init__(self, tally: Tally, console: Console) -> None:
        self._tally = tally
        super().__init__(
            BarColumn(bar_width=None),
            TextColumn("{task.completed:.0f}/{task.total:.0f} pages", markup=False),
            _RateColumn(tally),
            TimeRemainingColumn(compact=True),
            console=console,
            expand=True,
            refresh_per_second=4,
        )

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if self._tally.routes:
            yield Text(self._tally.routes_in_words(), style="cyan", overflow="ellipsis", no_wrap=True)


class _RateColumn(ProgressColumn):
    def __init__(self, tally: Tally) -> None:
        super().__init__()
        self._tally = tally

    def render(self, task: Task) -> Text:
        rate = self._tally.pages_per_minute
        return Text("" if rate is None else f"{rate:.1f} pages/min", style="cyan", no_wrap=True)
