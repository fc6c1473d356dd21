"""The services that the settings name: the database, the broker and the blob store, asked as a worker asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from models.errors import DoctriageError
from pipeline.settings import Settings
from workers.doctor import Check, CheckState


def check_services(settings: Settings) -> Iterator[Check]:
    """One for each that is named; none for a machine that keeps everything in its state folder."""
    if settings.database_url is not None:
        yield _check("database", lambda: _open_database(settings))
    if settings.pool.broker_url is not None:
        yield _check("broker", lambda: _ask_broker(settings))
    if settings.blobs.url is not None:
        yield _check("blob store", lambda: _ask_blob_store(settings))


def _check(name: str, ask: Callable[[], str]) -> Check:
    try:
        return Check(name=name, state=CheckState.OK, found=ask())
    except DoctriageError as error:
        return Check(name=name, state=CheckState.MISSING, found=str(error))


def _open_database(settings: Settings) -> str:
    """Which brings it up to date."""
    from pipeline.store import open_store

    with closing(open_store(settings.home.absolute(), settings.database_url)) as store:
        return f"{store.database.server.place} answers"


def _ask_broker(settings: Settings) -> str:
    from workers.broker import require_broker
    from workers.celery_app import celery_app

    require_broker(celery_app(settings))
    return "answers"


def _ask_blob_store(settings: Settings) -> str:
    from pipeline.blobs import BlobStore

    blobs = BlobStore(settings.home.absolute(), settings.blobs)
    blobs.require()
    return f"{blobs.place} takes what is written"
