"""``doctriage submissions``: what was submitted to the pool, how far it is, and changing one's mind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.pool import SubmissionState
from workers.cli.arguments import alternatives, named_path, one_of, whole_number
from workers.cli.asking import can_be_asked
from workers.cli.interrupts import INTERRUPTED, second_interrupt_ends_at_once
from workers.cli.printable import printable
from workers.cli.reading_options import parsed_formats

if TYPE_CHECKING:
    from workers.submissions import CancelledSubmission

GREATEST_SUBMISSION_ID = 2**31 - 1
"""That a database has room for."""

submissions_app = typer.Typer(
    no_args_is_help=True, help="What was submitted to the pool of workers, and how far it is."
)

Number = Annotated[
    int,
    typer.Argument(
        metavar="N",
        parser=whole_number(1, GREATEST_SUBMISSION_ID),
        help="The submission's number, as `doctriage submissions list` shows it.",
    ),
]


@submissions_app.command("list")
def list_command(
    state: Annotated[
        SubmissionState | None,
        typer.Option(
            parser=one_of(SubmissionState),
            metavar=alternatives(SubmissionState),
            help="Only those; by default all.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", parser=whole_number(1, 10_000), help="How many, the newest first.")
    ] = 20,
) -> None:
    """List what was submitted, the newest first: how urgent it is, who pays, and how far it is."""
    import time

    from pipeline.settings import load_settings
    from workers.cli.submission_tables import print_submissions
    from workers.cli.terminal import open_console
    from workers.submissions import opened_store

    with opened_store(load_settings()) as store:
        found = store.pool.submissions(limit=limit, state=state)
        place = store.database.server.place
    if not found:
        which = "no submissions" if state is None else f"no submission is {state}"
        typer.echo(
            f"{which} in {place}; `doctriage ingest PATH… --out DIR --executor celery` submits to the pool"
        )
        return
    print_submissions(open_console(), found, time.time())


@submissions_app.command("show")
def show_command(
    number: Number,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Stay until it is over; Ctrl-C ends the looking, not the reading."),
    ] = False,
) -> None:
    """Show a submission: its documents and pages by state, what was not read, how fast it goes and what is left."""
    from pipeline.settings import load_settings
    from workers.cli.submission_following import follow_submission
    from workers.cli.submission_page import submission_shown
    from workers.cli.terminal import open_console
    from workers.submissions import SubmissionLook, opened_store

    settings = load_settings()
    console = open_console()
    with opened_store(settings) as store:
        look = SubmissionLook(store, number, secret_key=settings.pool.secret_key)
        if not follow:
            console.print(submission_shown(look.view()))
            return
        try:
            follow_submission(console, look.view)
        except KeyboardInterrupt:
            typer.echo("the pool goes on; the same command looks again", err=True)
            raise typer.Exit(INTERRUPTED) from None


@submissions_app.command("cancel")
def cancel_command(
    numbers: Annotated[
        list[int],
        typer.Argument(
            metavar="N", parser=whole_number(1, GREATEST_SUBMISSION_ID), help="Submissions' numbers."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Cancel submissions: what nobody works on yet is not read.

    Pages under way are finished and booked. Pages that another submission waits for too are read
    for that one. What is done stays: `doctriage submissions fetch` brings documents finished before.
    """
    from pipeline.settings import load_settings
    from workers.submissions import cancel, opened_store, require_cancellable

    with opened_store(load_settings()) as store:
        found = require_cancellable(store, numbers)
        still_open = [one for one in found if not one.is_over]
        if still_open and not yes and can_be_asked():
            for one in still_open:
                unsettled = one.total_pages - one.settled_pages
                typer.echo(
                    f"submission {one.submission_id}, paid by {printable(one.cost_centre)}: {unsettled:,} of "
                    f"{one.total_pages:,} known pages are not settled"
                )
            typer.confirm("cancel?", abort=True)
        for one in found:
            for line in _cancelled_lines(cancel(store, one.submission_id)):
                typer.echo(line)


@submissions_app.command("prioritise")
def prioritise_command(
    number: Number,
    priority: Annotated[
        int,
        typer.Argument(
            metavar="PRIORITY",
            parser=whole_number(0, 9),
            help="0 is last, 9 first; submissions begin with 5.",
        ),
    ],
) -> None:
    """Change how urgent a submission is, for all of it that nobody works on yet."""
    from pipeline.settings import load_settings
    from workers.submissions import opened_store, prioritise

    with opened_store(load_settings()) as store:
        before = prioritise(store, number, priority)
    typer.echo(f"submission {number} has priority {priority} now; before it had {before}")


@submissions_app.command("fetch")
def fetch_command(
    number: Number,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the results are written.", parser=named_path)
    ],
    formats: Annotated[
        str | None,
        typer.Option("--format", metavar="LIST", help="As of ingest; by default all it asked for."),
    ] = None,
) -> None:
    """Follow a submission to its end and write its results, as `doctriage ingest` does.

    Exits with 1 when a document or a page failed, or was cancelled.
    """
    import time

    from pipeline.settings import load_settings
    from workers.cli.progress import progress_display
    from workers.cli.tables import print_report
    from workers.cli.terminal import open_console
    from workers.cluster.ingesting import fetch
    from workers.events import SourcesFound
    from workers.submissions import opened_store, require_formats

    settings = load_settings()
    asked = None if formats is None else parsed_formats(formats)
    with opened_store(settings) as store:
        chosen = require_formats(store, number, asked)
        so_far = store.pool.progress(number)
    with second_interrupt_ends_at_once(), progress_display(open_console(stderr=True)) as progress:
        begun_before_s = so_far.open_s(time.time())
        progress.on_event(SourcesFound(count=so_far.total_sources, begun_before_s=begun_before_s))
        report = fetch(number, out, settings=settings, formats=chosen, on_event=progress.on_event)
    print_report(open_console(), report, out)
    if report.is_interrupted:
        typer.echo("stopped; the pool goes on, and the same command comes back to it", err=True)
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(1 if report.failures or report.failed_pages else 0)


def _cancelled_lines(cancelled: CancelledSubmission) -> list[str]:
    from workers.cli.table_parts import plural

    progress = cancelled.progress
    number = progress.submission_id
    if not cancelled.was_open:
        return [f"submission {number} was cancelled before"]
    settled = f"{progress.settled_pages:,} of {plural(progress.total_pages, 'page')}"
    lines = [f"submission {number} is cancelled; {settled} were settled, and stay"]
    under_way = [
        words
        for count, words in (
            (cancelled.pages_on_cpu, f"{plural(cancelled.pages_on_cpu, 'page')} on a CPU"),
            (cancelled.pages_at_vlm, f"{plural(cancelled.pages_at_vlm, 'page')} with the VLM"),
        )
        if count
    ]
    if under_way:
        lines.append(f"under way, to be finished and booked: {' and '.join(under_way)}")
    return lines
