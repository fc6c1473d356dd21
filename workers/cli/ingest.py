"""``doctriage ingest``: folders and files become text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.arguments import named_path
from workers.cli.compare import quote_of_ingest, shown_comparison
from workers.cli.interrupts import INTERRUPTED, second_interrupt_ends_at_once
from workers.cli.pool_ingest import (
    Chosen,
    Detach,
    ExecutorName,
    Priority,
    read_with_pool,
    refuse_without_pool,
)
from workers.cli.reading_options import (
    USUAL_FORMATS,
    CostCentre,
    EngineName,
    Formats,
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
    VlmUrl,
    VlmWait,
    all_passwords,
    overrides,
    parsed_formats,
    paths_in_words,
    require_existing,
)
from workers.cli.remote_ingest import ServerUrl, read_with_server, refuse_what_the_server_decides

if TYPE_CHECKING:
    from pipeline.chargeback.saved_quote import SavedQuote
    from pipeline.settings import Settings
    from workers.events import IngestReport, IngestRequest


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
    vlm_url: VlmUrl = None,
    vlm_model: VlmModel = None,
    vlm_profile: VlmProfile = None,
    plan: Plan = None,
    vlm_wait: VlmWait = None,
    cost_centre: CostCentre = None,
    formats: Formats = USUAL_FORMATS,
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
    executor: ExecutorName = None,
    priority: Priority = None,
    detach: Detach = False,
    server: ServerUrl = None,
) -> None:
    """Read documents into Markdown and JSON, and send the pages that need it to a vision-language model (VLM).

    Pages that an earlier run finished under the same settings are not read again: after Ctrl-C, or a crash,
    the same command goes on where it stopped. Exits with 1 when a document or a page failed.
    """
    require_existing(paths)
    chosen = Chosen(
        executor=executor,
        jobs=jobs,
        route=route,
        profile=profile,
        languages=lang,
        engine=engine,
        vlm_url=vlm_url,
        vlm_model=vlm_model,
        vlm_profile=vlm_profile,
        plan=plan,
        vlm_wait_s=vlm_wait,
    )
    chosen_formats = parsed_formats(formats)
    passwords = all_passwords(password, password_file)

    from pipeline.chargeback.cost_centres import cost_centre_name
    from pipeline.settings import load_settings
    from workers.cli.tables import print_report
    from workers.cli.terminal import open_console
    from workers.events import IngestRequest

    settings = load_settings({**chosen.overrides(), **overrides(None, server={"url": server})})
    if settings.server.url is not None:
        refuse_what_the_server_decides(
            chosen, {"--force": force or None, "--detach": detach or None, "--quote": quote}
        )
    payer = None if cost_centre is None else cost_centre_name(cost_centre)
    quoted = None if quote is None else quote_of_ingest(quote, payer, settings)
    request = IngestRequest(
        paths=tuple(paths),
        out_dir=out,
        cost_centre=payer,
        formats=chosen_formats,
        passwords=passwords,
        force=force,
    )
    if settings.server.url is not None:
        report = read_with_server(request, chosen, settings, priority=priority)
    elif settings.executor.kind == "celery":
        chosen.refuse_what_workers_decide()
        fetched = read_with_pool(request, chosen, settings, priority=priority, detach=detach)
        if fetched is None:
            return
        report = fetched
    else:
        refuse_without_pool({"--priority": priority, "--detach": detach or None})
        report = _read_here(request, settings)
    if not report.documents and not report.failures and not report.is_interrupted:
        typer.echo(f"nothing to read: no file in {paths_in_words(paths)}", err=True)
        return
    print_report(open_console(), report, out)
    if quoted is not None and not report.is_interrupted:
        typer.echo()
        _print_documents_apart(quoted, report)
        shown_comparison(quoted, settings)
    raise typer.Exit(_exit_code(report))


def _read_here(request: IngestRequest, settings: Settings) -> IngestReport:
    from workers import local
    from workers.cli.progress import progress_display
    from workers.cli.terminal import open_console

    with second_interrupt_ends_at_once(), progress_display(open_console(stderr=True)) as progress:
        report = local.ingest(request, settings=settings, on_event=progress.on_event)
    if report.is_interrupted:
        typer.echo("stopped; finished pages are kept, and the same command goes on from here", err=True)
    return report


def _print_documents_apart(quote: SavedQuote, report: IngestReport) -> None:
    from rich.text import Text

    from workers.cli.comparison_tables import documents_apart
    from workers.cli.terminal import open_console

    console = open_console()
    for line in documents_apart(quote, report.documents):
        console.print(Text(line, style="yellow"))


def _exit_code(report: IngestReport) -> int:
    if report.is_interrupted:
        return INTERRUPTED
    return 1 if report.failures or report.failed_pages else 0
