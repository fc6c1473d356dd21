"""What a watch says, line by line, and what stands on a terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from workers.cli.watch_display import LiveWatch, PlainWatch, WatchCounts, event_in_words, watch_display
from workers.events import DocumentFound, PageGivenUp, SourcesFound
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

DONE = FileRead(name="a.pdf", page_count=3, failed_pages=0)
FAILED = FileFailed(name="b.pdf", code="empty_file", message="b.pdf: it is empty")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (FileSeen(name="a.pdf", byte_count=1, is_changed=False), "new: a.pdf, 1 byte"),
        (FileSeen(name="a\n.pdf", byte_count=2_000, is_changed=True), "changed: a\\x0a.pdf, 2,000 bytes"),
        (
            FileUnfinished(name="a.pdf", grace_s=60),
            "unfinished: a.pdf has no end yet; it is read once it has, or after 60 s without change",
        ),
        (BatchStarted(count=2), "reading: 2 files"),
        (DONE, "done: a.pdf, 3 pages"),
        (FileRead(name="a.pdf", page_count=3, failed_pages=1), "done: a.pdf, 3 pages, 1 of them failed"),
        (
            FileFailedForNow(name="b.pdf", message="b.pdf: damaged", grace_s=7.5),
            "not yet: b.pdf: damaged (it is read again when it changes, or after 7.5 s without change)",
        ),
        (FAILED, "failed: b.pdf: it is empty"),
        (FileMoved(name="a.pdf", target=Path("done/a.pdf")), "moved: a.pdf to done/a.pdf"),
        (FileNotMoved(name="a.pdf", message="a.pdf: has changed"), "not moved: a.pdf: has changed"),
        (Waiting(message="db: away"), "waiting: db: away"),
        (WentOn(), "going on"),
        (Looked(settling=1, unfinished=0), None),
    ],
)
def test_the_line_of_an_event(event: WatchEvent, line: str | None) -> None:
    assert event_in_words(event) == line


def plain() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=80, soft_wrap=True, highlight=False), stream


def test_elsewhere_than_on_a_terminal_a_line_an_event_with_its_time() -> None:
    console, stream = plain()
    noon = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)
    with PlainWatch(console, now=lambda: noon) as display:
        display.on_watch_event(DONE)
        display.on_watch_event(Looked(settling=0, unfinished=0))
        display.on_event(SourcesFound(count=1))
        display.on_event(PageGivenUp(source="a.pdf", page_number=2, code="x", message="it is torn"))
    assert stream.getvalue().splitlines() == [
        "2026-11-30 12:00:05 done: a.pdf, 3 pages",
        "2026-11-30 12:00:05 failed: a.pdf, page 2: it is torn",
    ]


def test_the_counts_follow_the_events() -> None:
    counts = WatchCounts(title="watching in")
    for event in (Looked(settling=3, unfinished=1), BatchStarted(count=2)):
        counts.add(event)
    counts.pages.add(SourcesFound(count=1))
    counts.pages.add(DocumentFound(source="a.pdf", document_id="ab", page_count=4))
    assert counts.in_words() == (
        "watching in, settling 1 (1 unfinished), reading 2: 0/4 pages, done 0, failed 0"
    )
    for event in (DONE, FAILED, Looked(settling=0, unfinished=0)):
        counts.add(event)
    assert counts.in_words() == "watching in, settling 0, done 1, failed 1"
    counts.add(Waiting(message="db: away"))
    assert counts.in_words() == "waiting: db: away"
    counts.add(WentOn())
    assert counts.in_words() == "watching in, settling 0, done 1, failed 1"


def test_a_terminal_shows_counts_and_the_last_results() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=True, color_system=None, legacy_windows=False)
    display = watch_display(console, "watching in")
    assert isinstance(display, LiveWatch)
    with display:
        for number in range(12):
            display.on_watch_event(FileRead(name=f"{number}.pdf", page_count=1, failed_pages=0))
    last = stream.getvalue().split("\x1b[2K")[-1] + stream.getvalue()
    assert "done 12, failed 0" in last
    assert "done: 11.pdf, 1 page" in last
