"""Quotes: a document is read on the CPU in processes of its own, and what it would cost is told."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from models.document_name import last_part
from models.errors import DoctriageError, PageTimedOut, WorkerCrashed
from pipeline.chargeback.sample_size import SampleSize
from pipeline.settings import Settings
from workers.child_process import begin_child
from workers.logs import set_up_service_logs
from workers.pool import interrupts_held_back, kill_group

if TYPE_CHECKING:
    from pipeline.chargeback.saved_quote import SavedQuote

QUOTE_LIMIT_S: Final = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteOrder:
    """``settings`` with what was wished for; ``name`` is what the sender calls the document at ``path``."""

    settings: Settings
    path: Path
    name: str
    cost_centre: str
    password: str | None = field(repr=False)
    sample: SampleSize | None


def quote_json(order: QuoteOrder) -> str:
    """One JSON object, as ``doctriage quote --json`` prints it. Raises what a quote raises, ``PageTimedOut`` where it
    takes too long, and ``WorkerCrashed``."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_quote, args=(theirs, order), name="doctriage-quote")
    with interrupts_held_back():
        process.start()
    theirs.close()
    try:
        if not ours.poll(QUOTE_LIMIT_S):
            raise PageTimedOut(
                f"the quote takes more than {QUOTE_LIMIT_S:,.0f} s; ask for one of a sample of the pages"
            )
        answer: str | DoctriageError = ours.recv()
    except EOFError as error:
        raise WorkerCrashed("whoever made the quote died over it; try again") from error
    finally:
        with suppress(ValueError):
            kill_group(process)
        process.join()
        ours.close()
    if isinstance(answer, DoctriageError):
        raise answer
    return answer


def _quote(connection: Connection, order: QuoteOrder) -> None:
    """The whole life of the process."""
    from pipeline.chargeback.quote_file import saved
    from workers.quoting import QuoteRequest, quote

    begin_child(order.settings)
    try:
        with _named(order) as path:
            made = quote(
                QuoteRequest(
                    paths=(path,),
                    cost_centre=order.cost_centre,
                    passwords=() if order.password is None else (order.password,),
                    sample=order.sample,
                ),
                settings=order.settings,
                on_event=lambda _: None,
            )
        set_up_service_logs(order.settings)
        assert made is not None
        connection.send(_renamed(saved(made), order.name).model_dump_json())
    except DoctriageError as error:
        connection.send(error)


def _renamed(quote: SavedQuote, name: str) -> SavedQuote:
    """With the folders that the document's name has."""
    return quote.model_copy(
        update={
            "documents": tuple(one.model_copy(update={"sources": (name,)}) for one in quote.documents),
            "refusals": tuple(one.model_copy(update={"source": name}) for one in quote.refusals),
        }
    )


@contextmanager
def _named(order: QuoteOrder) -> Iterator[Path]:
    """The document under its file's own name, without another copy."""
    with TemporaryDirectory(prefix="quote-") as folder:
        link = Path(folder) / last_part(order.name)
        link.symlink_to(order.path)
        yield link
