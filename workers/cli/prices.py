"""``doctriage prices``: the price book, and prices derived from what a GPU costs and reads."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.chargeback.echoes import echoed
from workers.cli.arguments import day, named_path
from workers.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from pipeline.chargeback.price_book import ModelPrices, PriceBook, PriceEntry
    from pipeline.chargeback.price_derivation import CpuThroughput

COMPLETION_TOKENS_PER_PAGE = Decimal(600)
"""An estimate: a page of about 400 words."""

COMPLETION_WEIGHT = Decimal(4)
"""An estimate: a prompt is read at once, an answer is written token by token."""

CACHED_WEIGHT = Decimal(1)
"""No discount: what the cache saves already shows in the pages an hour."""

UNPRICED = "unpriced"
TOKEN_KEYS = ("per_million_prompt_tokens", "per_million_cached_tokens", "per_million_completion_tokens")
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")

prices_app = typer.Typer(no_args_is_help=True, help="What tokens and pages cost, and how prices come about.")


def _number(given: str | Decimal) -> Decimal:
    """Typer hands defaults over too, as they are."""
    if _NUMBER.fullmatch(str(given)) is None:
        raise typer.BadParameter(
            f"{echoed(str(given))} is no number; write at most 12 digits before and after the point, such as 3.50"
        )
    return Decimal(given)


def _number_above_0(given: str | Decimal) -> Decimal:
    number = _number(given)
    if not number:
        raise typer.BadParameter("it must be above 0")
    return number


def _share(given: str | Decimal) -> Decimal:
    number = _number(given)
    if number > 1:
        raise typer.BadParameter(f"{given} is above 1: a cached token costs no more than another")
    return number


def _currency(text: str) -> str:
    from pipeline.chargeback.price_book import currency_code

    return _checked(currency_code, text)


def _model(text: str) -> str:
    from pipeline.chargeback.price_book import model_name

    return _checked(model_name, text)


def _checked(check: Callable[[str], str], text: str) -> str:
    try:
        return check(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@prices_app.command("show")
def show_command(
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A price book; by default the configured one.", parser=named_path),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the prices in force today (UTC) and those to come."""
    from pipeline.chargeback.price_book import load_price_book
    from pipeline.settings import load_settings

    load_settings()
    book = load_price_book(file)
    today = datetime.now(UTC).date()
    if as_json:
        typer.echo(json.dumps(_book_document(book, today), ensure_ascii=False))
    else:
        _print_book(book, today)


@prices_app.command("derive")
def derive_command(
    gpu_hour: Annotated[
        Decimal, typer.Option(metavar="AMOUNT", parser=_number, help="What an hour of the GPU costs.")
    ],
    pages_per_hour: Annotated[
        Decimal,
        typer.Option(
            metavar="N", parser=_number_above_0, help="Pages the GPU reads in an hour, as measured."
        ),
    ],
    tokens_per_page: Annotated[
        Decimal,
        typer.Option(metavar="N", parser=_number_above_0, help="Prompt tokens of a page, visual and text."),
    ],
    completion_tokens_per_page: Annotated[
        Decimal, typer.Option(metavar="N", parser=_number_above_0, help="Tokens of a page's answer.")
    ] = COMPLETION_TOKENS_PER_PAGE,
    completion_weight: Annotated[
        Decimal,
        typer.Option(
            metavar="N", parser=_number_above_0, help="GPU time of a completion token in prompt tokens."
        ),
    ] = COMPLETION_WEIGHT,
    cached_weight: Annotated[
        Decimal, typer.Option(metavar="N", parser=_share, help="The same of a cached prompt token, 0 to 1.")
    ] = CACHED_WEIGHT,
    cpu_hour: Annotated[
        Decimal | None,
        typer.Option(metavar="AMOUNT", parser=_number, help="What an hour of a CPU core costs."),
    ] = None,
    cpu_pages_per_hour: Annotated[
        Decimal | None,
        typer.Option(metavar="N", parser=_number_above_0, help="Pages a core reads in an hour, as measured."),
    ] = None,
    currency: Annotated[
        str, typer.Option(metavar="CODE", parser=_currency, help="Of all amounts, by ISO 4217.")
    ] = "USD",
    model: Annotated[
        str, typer.Option(metavar="NAME", parser=_model, help="The model measured; * is any other.")
    ] = "*",
    effective_from: Annotated[
        date | None,
        typer.Option(metavar="DAY", parser=day, help="The first day (UTC) of the prices; by default today."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", parser=named_path, help="Write the price book, a new file.")
    ] = None,
) -> None:
    """Derive prices from a GPU's cost and throughput: a price book in TOML, its comments show the arithmetic."""
    from pipeline.chargeback.price_book import parse_price_book
    from pipeline.chargeback.price_derivation import GpuThroughput, derived_book_text
    from pipeline.named_files import named_file, require_place
    from pipeline.settings import load_settings

    if out is not None:  # never over a file: a price book is the record of past prices
        require_place(out, "--out", may_exist=False)
    load_settings()
    gpu = GpuThroughput(
        hour_cost=gpu_hour,
        pages_per_hour=pages_per_hour,
        prompt_tokens_per_page=tokens_per_page,
        completion_tokens_per_page=completion_tokens_per_page,
        completion_weight=completion_weight,
        cached_weight=cached_weight,
    )
    text = derived_book_text(
        gpu,
        _cpu(cpu_hour, cpu_pages_per_hour),
        currency=currency,
        model_id=model,
        effective_from=datetime.now(UTC).date() if effective_from is None else effective_from,
    )
    parse_price_book(text, "the derived prices")
    if out is not None:
        with named_file(out) as stream:
            stream.write(text)
    typer.echo(text, nl=False)
    if out is not None:
        typer.echo(f"prices written to {printable(str(out))}", err=True)


def _cpu(hour_cost: Decimal | None, pages_per_hour: Decimal | None) -> CpuThroughput | None:
    from pipeline.chargeback.price_derivation import CpuThroughput

    if hour_cost is None and pages_per_hour is None:
        return None
    if hour_cost is None or pages_per_hour is None:
        raise typer.BadParameter("give both or neither", param_hint="--cpu-hour / --cpu-pages-per-hour")
    return CpuThroughput(hour_cost=hour_cost, pages_per_hour=pages_per_hour)


def _book_document(book: PriceBook, today: date) -> dict[str, object]:
    in_force = book.entry_on(today)
    return {
        "name": book.name,
        "version": book.version,
        "currency": book.currency,
        "day": today.isoformat(),
        "in_force": None if in_force is None else _entry_document(in_force),
        "to_come": [_entry_document(entry) for entry in book.entries_after(today)],
    }


def _entry_document(entry: PriceEntry) -> dict[str, object]:
    """Amounts are text, as in the price book."""
    return {
        "effective_from": entry.effective_from.isoformat(),
        "per_cpu_page": _cpu_page_text(entry),
        "models": {
            name: dict(zip(TOKEN_KEYS, _token_texts(prices), strict=True))
            for name, prices in entry.models.items()
        },
    }


def _token_texts(prices: ModelPrices) -> tuple[str, str, str]:
    """Prompt, cached and completion."""
    from pipeline.chargeback.amounts import TOKEN_PRICE_DECIMALS, amount_text

    return (
        amount_text(prices.prompt_micro, TOKEN_PRICE_DECIMALS),
        amount_text(prices.cached_tokens_micro, TOKEN_PRICE_DECIMALS),
        amount_text(prices.completion_micro, TOKEN_PRICE_DECIMALS),
    )


def _cpu_page_text(entry: PriceEntry) -> str | None:
    from pipeline.chargeback.amounts import CPU_PRICE_DECIMALS, amount_text

    return None if entry.cpu_page_micro is None else amount_text(entry.cpu_page_micro, CPU_PRICE_DECIMALS)


def _print_book(book: PriceBook, today: date) -> None:
    from workers.cli.terminal import open_console

    console = open_console()
    in_force = book.entry_on(today)
    typer.echo(f"price book {book.version}, in {book.currency}, on {today} (UTC)")
    if in_force is None:
        typer.echo(f"no prices are in force: everything is {UNPRICED}")
    else:
        console.print()
        console.print(_entry_table(in_force, f"In force since {in_force.effective_from}"))
    for entry in book.entries_after(today):
        console.print()
        console.print(_entry_table(entry, f"From {entry.effective_from}"))


def _entry_table(entry: PriceEntry, title: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    table.add_column("for a million tokens", overflow="fold")
    for heading in ("prompt", "cached", "completion"):
        table.add_column(heading, justify="right")
    for name, prices in sorted(entry.models.items(), key=lambda item: (item[0] == "*", item[0])):
        amounts = (f"{Decimal(amount):,.6f}" for amount in _token_texts(prices))
        table.add_row(Text("any other model" if name == "*" else name), *amounts)
    if "*" not in entry.models:
        table.add_row("any other model" if entry.models else "any model", *(UNPRICED,) * 3)
    table.add_section()
    table.add_row("for a page read on the CPU", _cpu_page_text(entry) or UNPRICED)
    return table
