"""What a watch shows: live counts and the last results on a terminal, a line an event elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self, assert_never

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from workers.cli.printable import printable
from workers.cli.progress import Tally, notice_of
from workers.cli.table_parts import plural
from workers.events import Event
from workers.watch_events import (
    BatchStarted,
    FileFailed,
    FileFailedForNow,
    FileMoved,
    FileNotMoved,
    FileRead,
    FileSeen,
    FileUnfinished,
    Looked,
    Waiting,
    WatchEvent,
    WentOn,
)

RECENT_LINES = 10

STYLES: dict[type[WatchEvent], str] = {
    FileRead: "green",
    FileFailed: "red",
    FileFailedForNow: "yellow",
    FileNotMoved: "yellow",
    Waiting: "yellow",
}


def event_in_words(event: WatchEvent) -> str | None:
    """One line; None for what only counts."""
    match event:
        case FileSeen(name=name, byte_count=byte_count, is_changed=is_changed):
            return f"{'changed' if is_changed else 'new'}: {printable(name)}, {plural(byte_count, 'byte')}"
        case BatchStarted(count=count):
            return f"reading: {plural(count, 'file')}"
        case FileMoved(name=name, target=target):
            return f"moved: {printable(name)} to {printable(str(target))}"
        case FileNotMoved(message=message):
            return f"not moved: {printable(message)}"
        case Waiting(message=message):
            return f"waiting: {printable(message)}"
        case WentOn():
            return "going on"
        case Looked():
            return None
        case _:
            return _outcome_in_words(event)


def _outcome_in_words(event: FileUnfinished | FileRead | FileFailedForNow | FileFailed) -> str:
    match event:
        case FileUnfinished(name=name, grace_s=grace_s):
            return (
                f"unfinished: {printable(name)} has no end yet; it is read once it has, "
                f"or after {grace_s:g} s without change"
            )
        case FileRead(name=name, page_count=page_count, failed_pages=failed_pages):
            failed = f", {failed_pages:,} of them failed" if failed_pages else ""
            return f"done: {printable(name)}, {plural(page_count, 'page')}{failed}"
        case FileFailedForNow(message=message, grace_s=grace_s):
            return (
                f"not yet: {printable(message)} (it is read again when it changes, "
                f"or after {grace_s:g} s without change)"
            )
        case FileFailed(message=message):
            return f"failed: {printable(message)}"
        case _:
            assert_never(event)


class WatchDisplay(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def on_watch_event(self, event: WatchEvent) -> None: ...

    def on_event(self, event: Event) -> None:
        """Of the run that reads a batch."""


def watch_display(console: Console, title: str) -> WatchDisplay:
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveWatch(console, title)
    return PlainWatch(console)


@dataclass(slots=True)
class PlainWatch:
    """A line an event, after the local time."""

    console: Console
    now: Callable[[], datetime] = field(default=lambda: datetime.now().astimezone())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def on_watch_event(self, event: WatchEvent) -> None:
        self._print(event_in_words(event))

    def on_event(self, event: Event) -> None:
        self._print(notice_of(event))

    def _print(self, line: str | None) -> None:
        if line is not None:
            self.console.print(Text(f"{self.now():%Y-%m-%d %H:%M:%S} {line}"))


class LiveWatch:
    """A line of counts that changes, above it the last results."""

    def __init__(self, console: Console, title: str) -> None:
        self._counts = WatchCounts(title=title)
        self._recent: deque[Text] = deque(maxlen=RECENT_LINES)
        self._spinner = Spinner("dots")
        self._live = Live(console=console, get_renderable=self._renderable, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def on_watch_event(self, event: WatchEvent) -> None:
        self._counts.add(event)
        line = event_in_words(event)
        if line is not None and not isinstance(event, FileSeen | BatchStarted):
            self._recent.append(_one_line(line, STYLES.get(type(event), "")))

    def on_event(self, event: Event) -> None:
        self._counts.pages.add(event)
        notice = notice_of(event)
        if notice is not None:
            self._recent.append(_one_line(notice, "yellow"))

    def _renderable(self) -> RenderableType:
        self._spinner.update(text=Text(self._counts.in_words(), style="cyan"))
        return Group(*self._recent, self._spinner)


def _one_line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


@dataclass(slots=True, kw_only=True)
class WatchCounts:
    """Files settling (those without their end among them), being read, done and failed."""

    title: str
    settling: int = 0
    unfinished: int = 0
    reading: int = 0
    done: int = 0
    failed: int = 0
    trouble: str | None = None
    pages: Tally = field(default_factory=Tally)

    def add(self, event: WatchEvent) -> None:
        match event:
            case Looked(settling=settling, unfinished=unfinished):
                self.settling, self.unfinished, self.reading = settling, unfinished, 0
            case BatchStarted(count=count):
                self.reading, self.pages = count, Tally()
                self.settling -= count
            case FileRead():
                self.done += 1
            case FileFailed():
                self.failed += 1
            case Waiting(message=message):
                self.trouble = message
            case WentOn():
                self.trouble = None
            case _:
                pass

    def in_words(self) -> str:
        if self.trouble is not None:
            return f"waiting: {printable(self.trouble)}"
        unfinished = f" ({self.unfinished:,} unfinished)" if self.unfinished else ""
        parts = [self.title, f"settling {max(0, self.settling):,}{unfinished}"]
        if self.reading:
            parts.append(f"reading {self.reading:,}: {self.pages.pages_in_words()}")
        return ", ".join([*parts, f"done {self.done:,}", f"failed {self.failed:,}"])
