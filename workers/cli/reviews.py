"""``doctriage reviews``: what people said of pages, for looking at and for fitting the policy to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.arguments import cost_centre, named_path
from workers.cli.printable import printable

if TYPE_CHECKING:
    from pipeline.blobs import BlobStore
    from pipeline.store import ReviewStore

reviews_app = typer.Typer(
    no_args_is_help=True, help="What people said of pages on the web page, and labels made of it."
)

OfCostCentre = Annotated[
    str | None,
    typer.Option(
        "--cost-centre",
        metavar="COST_CENTRE",
        parser=cost_centre,
        help="Of that one and of its projects alone.",
    ),
]


@reviews_app.command("list")
def list_command(of_cost_centre: OfCostCentre = None) -> None:
    """List the pages that were reviewed: what was said last, and where reviewers differ."""
    from workers.cli.review_table import print_reviewed_pages
    from workers.cli.terminal import open_console

    with _opened() as (reviews, _):
        pages = tuple(reviews.reviewed_pages(of_cost_centre))
    if not pages:
        typer.echo("no page was reviewed; `doctriage serve` has a web page for that")
        return
    print_reviewed_pages(open_console(), pages)


@reviews_app.command("export")
def export_command(
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", parser=named_path, help="The folder of the corpus; made if missing."),
    ],
    of_cost_centre: OfCostCentre = None,
) -> None:
    """Write a corpus of the reviewed pages, with the documents, that `doctriage calibrate --corpus DIR` reads.

    Where reviewers differ the newest word counts, and the page is borderline.
    """
    from workers.reviews import export_corpus

    with _opened() as (reviews, blobs):
        done = export_corpus(reviews.reviewed_pages(of_cost_centre), blobs, out)
    typer.echo(f"{done.pages:,} pages of {done.documents:,} documents are in {printable(str(out))}")
    for document_id in done.missing:
        typer.echo(f"document {document_id[:12]}… is left out: its bytes are not kept any more", err=True)
    if done.missing:
        raise typer.Exit(1)


@contextmanager
def _opened() -> Iterator[tuple[ReviewStore, BlobStore]]:
    from pipeline.blobs import open_blobs
    from pipeline.settings import load_settings
    from workers.submissions import opened_store

    settings = load_settings()
    with opened_store(settings) as store:
        yield store.reviews, open_blobs(settings.home.absolute(), settings.blobs)
