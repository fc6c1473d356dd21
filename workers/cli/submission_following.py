"""Following a submission: a live page on a terminal, now and then a line elsewhere. Import this inside a command."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from workers.cli.submission_page import follow_line, submission_shown
from workers.submissions import SubmissionView

LOOK_EVERY_S: Final = 1.0
SHARE_OF_TIME: Final = 0.1
"""Looking takes no more of the time than this, however large the submission."""
FIRST_LINE_S: Final = 5.0


def follow_submission(
    console: Console,
    look: Callable[[], SubmissionView],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until it is over, with the whole of it at the end. Raises KeyboardInterrupt with Ctrl-C."""
    if console.is_terminal and not console.is_dumb_terminal:
        _live(console, look, clock, sleep)
    else:
        _in_lines(console, look, clock, sleep)


def _live(
    console: Console,
    look: Callable[[], SubmissionView],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    view = look()
    with Live(submission_shown(view), console=console, auto_refresh=False) as live:
        while not view.progress.is_over:
            view = _next(look, clock, sleep)
            live.update(submission_shown(view), refresh=True)


def _in_lines(
    console: Console,
    look: Callable[[], SubmissionView],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """A line at once, and each time the looking is a tenth longer, so a night gives some tens."""
    started_s = clock()
    view = look()
    next_line_s = 0.0
    while not view.progress.is_over:
        elapsed_s = clock() - started_s
        if elapsed_s >= next_line_s:
            console.print(Text(follow_line(view)))
            next_line_s = max(elapsed_s * 1.1, elapsed_s + FIRST_LINE_S)
        view = _next(look, clock, sleep)
    console.print(submission_shown(view))


def _next(
    look: Callable[[], SubmissionView], clock: Callable[[], float], sleep: Callable[[float], None]
) -> SubmissionView:
    started_s = clock()
    view = look()
    sleep(max(LOOK_EVERY_S, (clock() - started_s) / SHARE_OF_TIME))
    return view
