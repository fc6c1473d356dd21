"""``doctriage chargeback``: who pays what, in the terminal and as files."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from pipeline.chargeback.statement_lines import StatementBy
from workers.cli.arguments import alternatives, day, named_path, one_of, whole_number
from workers.cli.chargeback_reversal import reverse_command
from workers.cli.compare import compare_command
from workers.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.chargeback.reconciliation import CounterReading, Reconciliation
    from pipeline.chargeback.statement import Statement
    from pipeline.store.statements import StatementStore
    from workers.statements import Window

CHART_SUFFIXES = (".png", ".html")


class StatementFormat(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    FOCUS = "focus"


chargeback_app = typer.Typer(invoke_without_command=True)


def _chart_path(text: str) -> Path:
    path = named_path(text)
    if path.suffix.lower() not in CHART_SUFFIXES:
        raise typer.BadParameter(f"{printable(text)}: name a file that ends in .png or .html")
    return path


@chargeback_app.callback()
def chargeback_command(
    context: typer.Context,
    first_day: Annotated[
        date | None,
        typer.Option(
            "--from",
            metavar="DAY",
            parser=day,
            help="The first day (UTC); by default this month's.",
        ),
    ] = None,
    end_day: Annotated[
        date | None,
        typer.Option("--to", metavar="DAY", parser=day, help="The day after the last one (UTC)."),
    ] = None,
    by: Annotated[
        StatementBy,
        typer.Option(
            parser=one_of(StatementBy),
            metavar=alternatives(StatementBy),
            help="What the lines of the statement are.",
        ),
    ] = StatementBy.COST_CENTRE,
    form: Annotated[
        StatementFormat,
        typer.Option(
            "--format",
            parser=one_of(StatementFormat),
            metavar=alternatives(StatementFormat),
            help="focus is a CSV file by the FinOps specification FOCUS 1.2.",
        ),
    ] = StatementFormat.TABLE,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=named_path, help="Where it goes; by default standard output."),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=_chart_path,
            help="Draw cost by team and day, and tokens avoided: .png or .html.",
        ),
    ] = None,
) -> None:
    """Say who pays what: pages, tokens, cost, and what was avoided and wasted, from the ledger."""
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from pipeline.settings import load_settings
    from workers.statements import opened_ledger

    if form is StatementFormat.PARQUET and out is None:
        raise typer.BadParameter("Parquet is no text; name a file with --out", param_hint="--format")
    if form is StatementFormat.FOCUS and _is_given(context, "by"):
        raise typer.BadParameter(
            "FOCUS has a row for each day, cost centre and model; leave it out", param_hint="--by"
        )
    window = _window(first_day, end_day)
    _require_places({"--out": out, "--chart": chart})
    settings = load_settings()
    with opened_ledger(settings) as ledger:
        if form is StatementFormat.FOCUS:
            _export_focus(ledger, window, out)
        else:
            _state(ledger, window, by, form, out)
        if chart is not None:
            _draw(ledger, window, chart)


def _refuse_options(context: typer.Context) -> None:
    """Options before a subcommand would be passed over in silence."""
    for parameter in context.command.params:
        if _is_given(context, parameter.name or ""):
            raise typer.BadParameter(
                f"{parameter.opts[0]} belongs to `doctriage chargeback` alone, not to {context.invoked_subcommand}"
            )


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _window(first_day: date | None, end_day: date | None) -> Window:
    from workers.statements import window_of

    try:
        return window_of(first_day, end_day, today=datetime.now(UTC).date())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from / --to") from error


def _state(
    ledger: StatementStore, window: Window, by: StatementBy, form: StatementFormat, out: Path | None
) -> None:
    from workers.statement_files import json_text, parquet_bytes, require_parquet, write_csv
    from workers.statements import read_statement

    if form is StatementFormat.PARQUET:
        require_parquet()
    statement, names = read_statement(ledger, by, window)
    match form:
        case StatementFormat.TABLE:
            with _text_out(out) as stream:
                _print_tables(statement, names, stream)
        case StatementFormat.CSV:
            with _text_out(out) as stream:
                write_csv(statement, names, stream)
        case StatementFormat.JSON:
            with _text_out(out) as stream:
                stream.write(json_text(statement, names) + "\n")
        case StatementFormat.PARQUET if out is not None:
            _write_bytes(out, parquet_bytes(statement, names))
    if form is not StatementFormat.TABLE:
        _print_notes(statement)
    _say_where(out, "statement")


def _print_tables(statement: Statement, names: Mapping[str, str], stream: TextIO) -> None:
    from workers.cli.chargeback_tables import notes, statement_tables
    from workers.cli.terminal import open_console

    console = open_console(file=None if stream is sys.stdout else stream)
    window = f"from {statement.first_day} up to, not including, {statement.end_day} (UTC)"
    if not statement.lines:
        console.print(f"nothing is booked {window}")
    else:
        console.print(f"By {statement.by.value.replace('-', ' ')}, {window}")
        for table in statement_tables(statement, names):
            console.print()
            console.print(table)
        console.print()
    for line in notes(statement):
        console.print(line)


def _print_notes(statement: Statement) -> None:
    from workers.cli.chargeback_tables import notes

    for line in notes(statement):
        typer.echo(line, err=True)


def _export_focus(ledger: StatementStore, window: Window, out: Path | None) -> None:
    from workers.cli.chargeback_tables import unpriced_note
    from workers.statements import FocusExport

    export = FocusExport(ledger, window)
    with _text_out(out) as stream:
        stream.writelines(export.lines())
    if any(export.unpriced.values()):
        typer.echo(unpriced_note(export.unpriced), err=True)
    _say_where(out, "FOCUS export")


def _draw(ledger: StatementStore, window: Window, path: Path) -> None:
    from workers.statement_charts import chart_figures, chart_html, chart_png
    from workers.statements import team_days

    figures = chart_figures(team_days(ledger, window), *window.days)
    if path.suffix.lower() == ".png":
        _write_bytes(path, chart_png(figures))
    else:
        _write_bytes(path, chart_html(figures).encode())
    _say_where(path, "chart")


@contextmanager
def _text_out(path: Path | None) -> Iterator[TextIO]:
    from pipeline.named_files import named_file

    if path is None:
        yield sys.stdout
    else:
        with named_file(path) as stream:
            yield stream


def _write_bytes(path: Path, content: bytes) -> None:
    from pipeline.named_files import named_file

    with named_file(path) as stream:
        stream.buffer.write(content)


def _require_places(places: Mapping[str, Path | None]) -> None:
    """``places`` by their options."""
    from pipeline.named_files import require_place

    for option, path in places.items():
        if path is not None:
            require_place(path, option)


def _say_where(path: Path | None, what: str) -> None:
    if path is not None:
        typer.echo(f"{what} written to {printable(str(path))}", err=True)


chargeback_app.command("compare")(compare_command)
chargeback_app.command("reverse")(reverse_command)


@chargeback_app.command("explain")
def explain_command(
    reference: Annotated[
        str,
        typer.Argument(help="A source's name, the file itself, or 8 digits or more of its document's id."),
    ],
    page_number: Annotated[
        int, typer.Option("--page", metavar="N", parser=whole_number(1), help="Counted from 1.")
    ],
) -> None:
    """List every entry about a page, with the arithmetic: quantity × price = cost."""
    from pipeline.settings import load_settings
    from workers.cli.chargeback_page import entries_table, entry_totals
    from workers.cli.terminal import open_console
    from workers.statements import page_charges

    charges = page_charges(load_settings(), reference, page_number)
    console = open_console()
    console.print(
        f"{printable(charges.source)}, page {page_number}, document {charges.document_id[:12]}; "
        "costs are rounded once an entry, half to even"
    )
    console.print()
    console.print(entries_table((*charges.entries, *charges.cache_hits)))
    console.print()
    for line in entry_totals(charges.entries):
        console.print(line)
    if charges.open_calls:
        console.print(f"open calls to the VLM: {charges.open_calls}; each is booked when it ends")


@chargeback_app.command("reconcile")
def reconcile_command(
    vlm_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The service; by default DOCTRIAGE_VLM__URL.")
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=named_path, help="A reading that --save wrote: the window begins there."
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=named_path, help="Keep what the service has counted until now."),
    ] = None,
    tolerance: Annotated[
        int,
        typer.Option(
            parser=whole_number(0),
            metavar="TOKENS",
            help="How far they may differ, by model and kind of token.",
        ),
    ] = 0,
) -> None:
    """Compare the ledger's tokens with what vLLM counted. Exits with 1 where they differ.

    Two readings make a window: one with --save before, one with --since after. Take them while nothing runs.
    """
    from pipeline.settings import load_settings
    from workers.reconciliation import load_reading, read_counters, reconcile_ledger, save_reading
    from workers.statements import opened_ledger

    _require_places({"--save": save})
    settings = load_settings(None if vlm_url is None else {"vlm": {"url": vlm_url}})
    start = None if since is None else load_reading(since)
    now = read_counters(settings.vlm)
    is_within = True
    if start is None:
        _print_counters(now)
    else:
        with opened_ledger(settings) as ledger:
            reconciliation = reconcile_ledger(ledger, start, now)
        _print_reconciliation(reconciliation, tolerance)
        is_within = reconciliation.is_within(tolerance)
    if save is not None:
        save_reading(now, save)
        _say_where(save, "reading")
    raise typer.Exit(0 if is_within else 1)


def _print_counters(reading: CounterReading) -> None:
    for name, counters in sorted(reading.models.items()):
        typer.echo(
            f"{printable(name)}: {counters.prompt_tokens:,} prompt tokens and {counters.completion_tokens:,} "
            "completion tokens since the service started"
        )


def _print_reconciliation(reconciliation: Reconciliation, tolerance: int) -> None:
    from pipeline.chargeback.reconciliation import explanations
    from workers.cli.chargeback_reconciliation import reconciliation_table, verdict, window_words
    from workers.cli.terminal import open_console

    console = open_console()
    console.print(window_words(reconciliation))
    console.print()
    console.print(reconciliation_table(reconciliation, tolerance))
    console.print()
    console.print(verdict(reconciliation, tolerance))
    for line in explanations(reconciliation, tolerance):
        console.print(f"  - {printable(line)}")
