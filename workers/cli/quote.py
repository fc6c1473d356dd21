"""``doctriage quote``: what a run would cost, before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.chargeback.sample_size import SampleSize, sample_size
from workers.cli.arguments import named_path
from workers.cli.interrupts import INTERRUPTED, second_interrupt_ends_at_once
from workers.cli.printable import printable
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
    from pipeline.chargeback.quote import Quote


def _sample(text: str) -> SampleSize:
    try:
        return sample_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def quote_command(
    paths: Paths,
    sample: Annotated[
        SampleSize | None,
        typer.Option(metavar="N|SHARE", parser=_sample, help="Read so many pages alone, such as 200 or 10%."),
    ] = None,
    cost_centre: CostCentre = None,
    jobs: Jobs = None,
    engine: EngineName = None,
    lang: Languages = None,
    route: RouteName = None,
    profile: Profile = None,
    vlm_model: VlmModel = None,
    vlm_profile: VlmProfile = None,
    plan: Plan = None,
    password: Password = None,
    password_file: PasswordFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=named_path,
            help="Keep the quote as JSON, to compare it with the bill later.",
        ),
    ] = None,
) -> None:
    """Say what an ingest of these documents would cost: pages by route, tokens, money, and how sure that is.

    Pages are read on the CPU, and kept, so that an ingest with the same options reads none of them again; no VLM is
    asked and nothing is written. Exits with 1 when a document or a page could not be read.
    """
    require_existing(paths)
    given = overrides(
        route=route,
        executor={"jobs": jobs},
        triage={"profile": profile and profile.value},
        read={"engine": engine and engine.value, "languages": lang},
        vlm={"model": vlm_model, "profile": vlm_profile, "plan_file": plan},
    )
    passwords = all_passwords(password, password_file)
    if save is not None:
        from pipeline.named_files import require_place

        require_place(save, "--save")

    from pipeline.chargeback.cost_centres import cost_centre_name
    from pipeline.settings import load_settings
    from workers import quoting
    from workers.cli.progress import progress_display
    from workers.cli.terminal import open_console

    settings = load_settings(given)
    request = quoting.QuoteRequest(
        paths=tuple(paths),
        cost_centre=None if cost_centre is None else cost_centre_name(cost_centre),
        passwords=passwords,
        sample=sample,
    )
    with second_interrupt_ends_at_once(), progress_display(open_console(stderr=True)) as progress:
        quote = quoting.quote(request, settings=settings, on_event=progress.on_event)
    if quote is None:
        typer.echo("stopped; pages that were read are kept, and the same command goes on from here", err=True)
        raise typer.Exit(INTERRUPTED)
    _tell(quote, paths, as_json=as_json, save=save)
    raise typer.Exit(_exit_code(quote))


def _tell(quote: Quote, paths: list[Path], *, as_json: bool, save: Path | None) -> None:
    from pipeline.chargeback.quote_file import saved
    from pipeline.named_files import named_file
    from workers.cli.quote_tables import print_quote
    from workers.cli.terminal import open_console

    if save is not None:
        with named_file(save) as stream:
            stream.write(saved(quote).model_dump_json() + "\n")
    if as_json:
        typer.echo(saved(quote).model_dump_json())
    elif quote.documents or quote.refusals:
        print_quote(open_console(), quote)
    else:
        typer.echo(f"nothing to read: no file in {paths_in_words(paths)}", err=True)
    if save is not None:
        typer.echo(f"quote written to {printable(str(save))}", err=True)


def _exit_code(quote: Quote) -> int:
    is_unread = any(page.route is None for document in quote.documents for page in document.pages)
    return 1 if quote.refusals or is_unread else 0
