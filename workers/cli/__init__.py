"""The command line. Exit codes: 0 all fine, 1 some documents, pages or checks failed, 2 usage, 130 stopped.

``--help`` must answer at once, so nothing here or in the modules of the commands imports more than Typer and
the standard library at the top; each command imports what it needs when it runs.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from models.errors import (
    ApiKeyNotFound,
    BudgetUnusable,
    DoctriageError,
    EngineUnavailable,
    EntryNotReversible,
    OutputNotWritable,
    PriceBookInvalid,
    SettingsError,
    SubmissionNotFound,
)
from workers.cli.beat import beat_command
from workers.cli.budget import budget_app
from workers.cli.calibrate import calibrate_command
from workers.cli.chargeback import chargeback_app
from workers.cli.dead import dead_app
from workers.cli.doctor import doctor_command
from workers.cli.evaluate import evaluate_command
from workers.cli.explain import explain_command
from workers.cli.export import export_command
from workers.cli.ingest import ingest_command
from workers.cli.keys import keys_app
from workers.cli.openapi import openapi_command
from workers.cli.plan import plan_command
from workers.cli.prices import prices_app
from workers.cli.printable import printable
from workers.cli.purge import purge_command
from workers.cli.quote import quote_command
from workers.cli.reviews import reviews_app
from workers.cli.serve import serve_command
from workers.cli.submissions import submissions_app
from workers.cli.tokens import tokens_command
from workers.cli.watch import watch_command
from workers.cli.worker import worker_command

EXIT_FAILED = 1
EXIT_USAGE = 2

app = typer.Typer(
    name="doctriage",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("ingest")(ingest_command)
app.command("watch")(watch_command)
app.command("quote")(quote_command)
app.command("explain")(explain_command)
app.command("export")(export_command)
app.command("evaluate")(evaluate_command)
app.command("calibrate")(calibrate_command)
app.command("tokens")(tokens_command)
app.command("plan")(plan_command)
app.add_typer(submissions_app, name="submissions")
app.add_typer(dead_app, name="dead")
app.command("purge")(purge_command)
app.add_typer(reviews_app, name="reviews")
app.add_typer(prices_app, name="prices")
app.add_typer(chargeback_app, name="chargeback")
app.add_typer(budget_app, name="budget")
app.add_typer(keys_app, name="keys")
app.command("serve")(serve_command)
app.command("openapi")(openapi_command)
app.command("worker")(worker_command)
app.command("beat")(beat_command)
app.command("doctor")(doctor_command)


def main() -> None:
    """The console script."""
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except DoctriageError as error:
        sys.stderr.write(f"doctriage: {printable(str(error))}\n")
        raise SystemExit(exit_code(error)) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _write_nowhere(sys.stdout)
        sys.stderr.write("doctriage: standard output cannot be written: the disk is full; free some space\n")
        raise SystemExit(EXIT_USAGE) from None


def exit_code(error: DoctriageError) -> int:
    """2 where the run could not start as asked; 1 where it broke off."""
    match error:
        case (
            SettingsError()
            | PriceBookInvalid()
            | BudgetUnusable()
            | OutputNotWritable()
            | EngineUnavailable()
            | EntryNotReversible()
            | SubmissionNotFound()
            | ApiKeyNotFound()
        ):
            return EXIT_USAGE
        case _:
            return EXIT_FAILED


def _replace_closed_streams() -> None:
    """Python has None for a stream that was closed by whoever started it."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 — open to the end
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def _write_nowhere(stream: TextIO) -> None:
    """What the stream still holds is written at the end of the program, and must not fail then."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def _require_current_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise SettingsError("the current folder is gone; cd to one that is there and run again") from error


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"doctriage {version('doctriage')}")
        raise typer.Exit


@app.callback()
def doctriage(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Documents to Markdown, JSON and searchable text: OCR first, a vision-language model where it helps."""
    _require_current_folder()
