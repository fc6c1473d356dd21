"""``doctriage ingest``: folders and files become text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.arguments import named_path
from workers.cli.compare import quote_of_ingest, shown_comparison
from workers.cli.interrupts import INTERRUPTED, second_interrupt_ends_at_once
from workers.cli.reading_options import (
    CostCentre,
    EngineName,
    Jobs,
    Languages,
    Password,
    PasswordFile,
    Paths,
    Plan,
    Profile,
    RouteName,
    VlmModel,
    VlmProfile,
    all_passwords,
    overrides,
    paths_in_words,
    require_existing,
)

if TYPE_CHECKING:
    from pipeline.chargeback.quote_file import SavedQuote
    from workers.events import IngestReport

FORMATS = ("markdown", "json")


def ingest_command(
    paths: Paths,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the results are written.", parser=named_path)
    ],
    jobs: Jobs = None,
    engine: EngineName = None,
    lang: Languages = None,
    route: RouteName = None,
    profile: Profile = None,
    vlm_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The VLM's OpenAI-compatible API, like http://gpu:8000/v1."),
    ] = None,
    vlm_model: VlmModel = None,
    vlm_profile: VlmProfile = None,
    plan: Plan = None,
    vlm_wait: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long a page waits for a VLM that does not answer; by default 120.",
        ),
    ] = None,
    cost_centre: CostCentre = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help="markdown, json or both.")
    ] = ",".join(FORMATS),
    password: Password = None,
    password_file: PasswordFile = None,
    quote: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Compare the bill with what `doctriage quote --save` wrote.",
            parser=named_path,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Read pages again that an earlier run finished.")
    ] = False,
) -> None:
    """Read documents into Markdown and JSON, and send the pages that need it to a vision-language model (VLM).

    Pages that an earlier run finished under the same settings are not read again: after Ctrl-C, or a crash,
    the same command goes on where it stopped. Exits with 1 when a document or a page failed.
    """
    require_existing(paths)
    given = overrides(
        route=route,
        executor={"jobs": jobs},
        triage={"profile": profile and profile.value},
        read={"engine": engine and engine.value, "languages": lang},
        vlm={
            "url": vlm_url,
            "model": vlm_model,
            "profile": vlm_profile,
            "plan_file": plan,
            "wait_s": vlm_wait,
        },
    )
    chosen_formats = _parsed_formats(formats)
    passwords = all_passwords(password, password_file)

    from pipeline.chargeback.cost_centres import cost_centre_name
    from pipeline.settings import load_settings
    from workers import local
    from workers.cli.progress import progress_display
    from workers.cli.tables import print_report
    from workers.cli.terminal import open_console

    settings = load_settings(given)
    payer = None if cost_centre is None else cost_centre_name(cost_centre)
    quoted = None if quote is None else quote_of_ingest(quote, payer, settings)
    request = local.IngestRequest(
        paths=tuple(paths),
        out_dir=out,
        cost_centre=payer,
        formats=chosen_formats,
        passwords=passwords,
        force=force,
    )
    with second_interrupt_ends_at_once(), progress_display(open_console(stderr=True)) as progress:
        report = local.ingest(request, settings=settings, on_event=progress.on_event)
    if not report.documents and not report.failures and not report.is_interrupted:
        typer.echo(f"nothing to read: no file in {paths_in_words(paths)}", err=True)
        return
    print_report(open_console(), report, out)
    if quoted is not None and not report.is_interrupted:
        typer.echo()
        _print_documents_apart(quoted, report)
        shown_comparison(quoted, settings)
    raise typer.Exit(_exit_code(report))


def _print_documents_apart(quote: SavedQuote, report: IngestReport) -> None:
    from rich.text import Text

    from workers.cli.comparison_tables import documents_apart
    from workers.cli.terminal import open_console

    console = open_console()
    for line in documents_apart(quote, report.documents):
        console.print(Text(line, style="yellow"))


def _exit_code(report: IngestReport) -> int:
    if report.is_interrupted:
        typer.echo("stopped; finished pages are kept, and the same command goes on from here", err=True)
        return INTERRUPTED
    return 1 if report.failures or report.failed_pages else 0


def _parsed_formats(names: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in chosen if name not in FORMATS]
    if unknown or not chosen:
        raise typer.BadParameter(
            f"{names!r}: choose from {', '.join(FORMATS)}, separated by commas", param_hint="--format"
        )
    return chosen
