"""Which document a user means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import PageNotFound, SourceUnreadable
from pipeline.blobs import sha256_of

if TYPE_CHECKING:
    from pipeline.store import Store

MIN_ID_DIGITS = 8


def document_id_of(store: Store, reference: str) -> str:
    """``reference`` is a source name, a path to a file with the same bytes, or at least eight digits of the document
    id. Raises ``PageNotFound`` for no document, or for more than one."""
    path = Path(reference)
    if path.is_file():
        try:
            document_id = sha256_of(path)
        except SourceUnreadable as error:
            raise PageNotFound(f"{reference}: {error}") from error
        if store.pages.document(document_id) is not None:
            return document_id
    named = store.submissions.documents_named(reference)
    if named:
        return named[0]
    is_hexadecimal = set(reference) <= set("0123456789abcdef")
    is_id = is_hexadecimal and len(reference) >= MIN_ID_DIGITS
    starting = store.submissions.documents_starting(reference) if is_id else ()
    if len(starting) == 1:
        return starting[0]
    if starting:
        raise PageNotFound(f"{reference}: {len(starting)} documents begin so; give more digits of the id")
    if is_hexadecimal and not is_id:
        raise PageNotFound(
            f"{reference}: no source has that name; of a document's id, give at least {MIN_ID_DIGITS} digits"
        )
    raise PageNotFound(f"{reference}: not ingested yet; name a source, its file, or its document id")
