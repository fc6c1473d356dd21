"""``doctriage dead``: pages of the pool that failed for good, why, and another try."""

from __future__ import annotations

from typing import Annotated

import typer

from workers.cli.arguments import whole_number
from workers.cli.asking import can_be_asked
from workers.cli.submissions import GREATEST_SUBMISSION_ID

GREATEST_PAGE_NUMBER = 2**31 - 1

dead_app = typer.Typer(
    no_args_is_help=True, help="Pages that the pool of workers gave up: why, and another try."
)

Document = Annotated[
    str,
    typer.Argument(
        metavar="DOCUMENT", help="A source's name, the file itself, or 8 digits or more of its document's id."
    ),
]
PageNumber = Annotated[
    int, typer.Argument(metavar="PAGE", parser=whole_number(1, GREATEST_PAGE_NUMBER), help="Counted from 1.")
]
OfSubmission = Annotated[
    int | None,
    typer.Option(
        "--submission",
        metavar="N",
        parser=whole_number(1, GREATEST_SUBMISSION_ID),
        help="Of that submission alone.",
    ),
]


@dead_app.command("list")
def list_command(submission: OfSubmission = None) -> None:
    """List the pages that failed, those that failed last first."""
    from pipeline.settings import load_settings
    from workers.cli.dead_tables import print_dead_pages
    from workers.cli.terminal import open_console
    from workers.dead_pages import dead_pages_of
    from workers.submissions import opened_store

    with opened_store(load_settings()) as store:
        pages = dead_pages_of(store, submission)
    if not pages:
        typer.echo(_none_failed(submission))
        return
    print_dead_pages(open_console(), pages)


@dead_app.command("show")
def show_command(document: Document, page_number: PageNumber, submission: OfSubmission = None) -> None:
    """Say what is on record about a page that failed: its error, every attempt and call, and where the document is."""
    from pipeline.settings import load_settings
    from workers.cli.dead_tables import print_evidence
    from workers.cli.terminal import open_console
    from workers.dead_pages import dead_page_record, find_dead_page
    from workers.submissions import opened_store

    settings = load_settings()
    with opened_store(settings) as store:
        page = find_dead_page(store, document, page_number, submission_id=submission)
        record = dead_page_record(store, settings, page)
    print_evidence(open_console(), record)


@dead_app.command("retry")
def retry_command(
    document: Annotated[
        str | None, typer.Argument(metavar="DOCUMENT", help="As for `doctriage dead show`.")
    ] = None,
    page_number: Annotated[
        int | None,
        typer.Argument(metavar="PAGE", parser=whole_number(1, GREATEST_PAGE_NUMBER), help="Counted from 1."),
    ] = None,
    submission: OfSubmission = None,
    all_of_them: Annotated[bool, typer.Option("--all", help="Every page that failed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Put pages that failed back to work: one, those of a submission, or all.

    Their attempts count from the beginning, and what they cost is booked beside what they cost
    before. Their submissions are open until they are done, and the outputs are written again.
    Before more than a page you name is put back, you are asked on a terminal.
    """
    _require_one_choice(document, page_number, submission, all_of_them)

    from pipeline.settings import load_settings
    from workers.cli.dead_tables import question_before, retried_lines
    from workers.dead_pages import dead_pages_of, find_dead_page, retry
    from workers.submissions import opened_store

    settings = load_settings()
    with opened_store(settings) as store:
        if document is None or page_number is None:
            pages = dead_pages_of(store, submission)
            if pages and not yes and can_be_asked():
                typer.confirm(question_before(pages), abort=True)
        else:
            pages = (find_dead_page(store, document, page_number, submission_id=submission),)
        retried = retry(store, settings, pages)
    if not pages:
        typer.echo(_none_failed(submission))
    for line in retried_lines(retried):
        typer.echo(line)
    raise typer.Exit(1 if retried.refused and not retried.pages else 0)


def _require_one_choice(
    document: str | None, page_number: int | None, submission: int | None, all_of_them: bool
) -> None:
    if document is not None and page_number is None:
        raise typer.BadParameter("which page of it? name its number too", param_hint="PAGE")
    if document is None and submission is None and not all_of_them:
        raise typer.BadParameter("name DOCUMENT and PAGE, or --submission N, or --all", param_hint="DOCUMENT")
    if all_of_them and (document is not None or submission is not None):
        raise typer.BadParameter("with a document or a submission it says too much", param_hint="--all")


def _none_failed(submission: int | None) -> str:
    return (
        "no page has failed in the pool"
        if submission is None
        else f"no page of submission {submission} has failed"
    )
