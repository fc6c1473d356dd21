"""Rich consoles. Import this inside a command, never at start."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console

PIPED_WIDTH = 120
"""Columns of tables that do not go to a terminal; what reads them may be as narrow as a mail or a log viewer."""


class PipeConsole(Console):
    """A console whose reader may leave: the rest is dropped and the exit code stays that of the work."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (sys.stderr if self.stderr else sys.stdout).fileno())
        os.close(nowhere)


def open_console(*, stderr: bool = False, file: TextIO | None = None) -> Console:
    """Colours on a terminal, plain text elsewhere, as in a ``file``. Strings are never read as markup."""
    stream = file or (sys.stderr if stderr else sys.stdout)
    return PipeConsole(
        stderr=stderr,
        file=file,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=not stream.isatty(),
        width=None if stream.isatty() else PIPED_WIDTH,
    )
