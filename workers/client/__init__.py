"""A client of doctriage's HTTP API. Importing it is cheap: it loads no engine, no database and no image library."""

from models.document_state import DocumentState
from workers.client.client import Client
from workers.client.records import (
    Document,
    DocumentChanged,
    DocumentEnded,
    DocumentEvent,
    Fault,
    PageSettled,
    PageSummary,
)
from workers.client.uploads import SubmitOptions

__all__ = [
    "Client",
    "Document",
    "DocumentChanged",
    "DocumentEnded",
    "DocumentEvent",
    "DocumentState",
    "Fault",
    "PageSettled",
    "PageSummary",
    "SubmitOptions",
]
