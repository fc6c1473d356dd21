"""``doctriage ingest --server URL``: send documents to a server, follow them, and write what it reads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from models.errors import (
    DoctriageError,
    NotAuthenticated,
    PoolBusy,
    SettingsError,
    TooManyAtOnce,
    TooManyRequests,
)
from workers.cli.interrupts import second_interrupt_ends_at_once

if TYPE_CHECKING:
    from pipeline.settings import ServerSettings, Settings
    from workers.cli.pool_ingest import Chosen
    from workers.client import Client
    from workers.client.batch_order import BatchOrder
    from workers.events import IngestReport, IngestRequest

ServerUrl = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Have a doctriage server read them; the key is in DOCTRIAGE_SERVER__KEY or …__KEY_FILE.",
    ),
]


def refuse_what_the_server_decides(chosen: Chosen, given: Mapping[str, object]) -> None:
    """``given`` are further options by their names; None is not given."""
    decided = {
        "--executor": chosen.executor,
        "--jobs": chosen.jobs,
        "--engine": chosen.engine,
        "--vlm-url": chosen.vlm_url,
        "--vlm-model": chosen.vlm_model,
        "--vlm-profile": chosen.vlm_profile,
        "--plan": chosen.plan,
        "--vlm-wait": chosen.vlm_wait_s,
        **given,
    }
    for name, value in decided.items():
        if value is not None:
            raise typer.BadParameter(
                "not with --server, which decides that itself; leave it out", param_hint=name
            )


def read_with_server(
    request: IngestRequest, chosen: Chosen, settings: Settings, *, priority: int | None
) -> IngestReport:
    """Raises SettingsError for a key that the server refuses."""
    from workers.cli.progress import progress_display
    from workers.cli.terminal import open_console
    from workers.client.batch import Batch
    from workers.logs import set_up_logs
    from workers.sources import find_sources

    set_up_logs(settings.log_level)
    url, key = settings.server.url or "", api_key(settings.server)
    _require_server(url, key)
    out_dir = request.out_dir.absolute()
    sources = tuple(find_sources(request.paths, left_out=(out_dir, settings.home.absolute())))
    with second_interrupt_ends_at_once(), progress_display(open_console(stderr=True)) as progress:
        batch = Batch(
            _order(request, chosen, priority=priority, key=key),
            client=partial(_client, url, key=key, waits_for_room=True),
            on_event=progress.on_event,
            on_wait=_say_waiting,
        )
        report = batch.run(sources)
    if report.is_interrupted:
        typer.echo(
            "stopped; the server goes on with what it has, and the same command brings that and sends the rest",
            err=True,
        )
    return report


def api_key(settings: ServerSettings) -> str | None:
    """Raises SettingsError for a file that cannot be read."""
    if settings.key is not None:
        return settings.key.get_secret_value()
    if settings.key_file is None:
        return None
    path = settings.key_file.expanduser()
    try:
        return path.read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path}: cannot be read; name a file with the server's key and nothing else"
        ) from error


def _require_server(url: str, key: str | None) -> None:
    """Before anything is read. One that is full is waited for later. Raises SettingsError, ``ServerUnreachable``,
    ``ServerError`` and ``ScopeMissing``."""
    with _client(url, key=key, patience_s=0) as client:
        try:
            client.models()
        except (PoolBusy, TooManyAtOnce, TooManyRequests):
            return
        except NotAuthenticated as error:
            raise SettingsError(
                f"{url} does not take the key: {error}; put one of its keys into DOCTRIAGE_SERVER__KEY, or name its "
                "file with DOCTRIAGE_SERVER__KEY_FILE"
            ) from error


def _order(request: IngestRequest, chosen: Chosen, *, priority: int | None, key: str | None) -> BatchOrder:
    from workers.client.batch_order import BatchOrder

    return BatchOrder(
        out_dir=request.out_dir.absolute(),
        formats=request.formats,
        options={
            "route": chosen.route,
            "profile": chosen.profile,
            "languages": chosen.languages,
            "cost_centre": request.cost_centre,
            "priority": priority,
        },
        passwords=request.passwords,
        api_key=key,
    )


def _client(url: str, *, key: str | None, **more: object) -> Client:
    from workers.client import Client

    return Client(url, key=key, **more)  # type: ignore[arg-type]


def _say_waiting(error: DoctriageError) -> None:
    typer.echo(f"{error}; waiting", err=True)
