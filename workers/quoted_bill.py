"""A quote that was kept, beside what the ledger has booked since."""

from __future__ import annotations

from contextlib import closing

from pipeline.chargeback.quote_comparison import Comparison, compare
from pipeline.chargeback.saved_quote import SavedQuote
from pipeline.settings import Settings
from pipeline.store import open_store
from pipeline.store.quoted_entries import QuotedEntryStore


def compare_with_bill(quote: SavedQuote, settings: Settings) -> Comparison:
    """Raises ``StoreUnavailable``."""
    document_ids = [document.document_id for document in quote.documents]
    with closing(open_store(settings.home.absolute(), settings.database_url)) as store:
        entries = QuotedEntryStore(store.database).entries_of(
            document_ids, cost_centre=quote.cost_centre, since_s=quote.begun_at.timestamp()
        )
        return compare(quote, entries)
