"""``doctriage chargeback compare``: a quote that was kept, beside the bill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.arguments import named_path

if TYPE_CHECKING:
    from pipeline.chargeback.quote_comparison import Comparison
    from pipeline.chargeback.saved_quote import SavedQuote
    from pipeline.settings import Settings


def compare_command(
    quote: Annotated[
        Path, typer.Argument(metavar="QUOTE", help="What `doctriage quote --save` wrote.", parser=named_path)
    ],
) -> None:
    """Compare a quote with what has been booked about its documents since: pages, tokens, cost, and every page whose
    first call took other visual tokens than were quoted. Exits with 1 where there is such a page."""
    from pipeline.chargeback.quote_file import read_quote
    from pipeline.settings import load_settings

    settings = load_settings()
    comparison = shown_comparison(read_quote(quote), settings)
    raise typer.Exit(1 if comparison.differing else 0)


def quote_of_ingest(path: Path, cost_centre: str | None, settings: Settings) -> SavedQuote:
    """Raises SettingsError for a file that holds no quote, and for the quote of another cost centre: it would not be
    billed."""
    from models.errors import SettingsError
    from pipeline.chargeback.quote_file import read_quote

    quote = read_quote(path)
    payer = cost_centre or settings.chargeback.default_cost_centre
    if payer != quote.cost_centre:
        raise SettingsError(
            f"{path}: was quoted for {quote.cost_centre}, and {payer or 'nobody'} pays for this run; give "
            f"--cost-centre {quote.cost_centre}"
        )
    return quote


def shown_comparison(quote: SavedQuote, settings: Settings) -> Comparison:
    from workers.cli.comparison_tables import print_comparison
    from workers.cli.terminal import open_console
    from workers.quoted_bill import compare_with_bill

    comparison = compare_with_bill(quote, settings)
    print_comparison(open_console(), comparison)
    return comparison
