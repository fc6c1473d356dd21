"""``doctriage serve``: the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from workers.cli.arguments import whole_number
from workers.cli.reading_options import Jobs
from workers.cli.worker import GREATEST_PORT


def serve_command(
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Where to listen; by default DOCTRIAGE_API__HOST, 127.0.0.1."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(0, GREATEST_PORT),
            help="By default DOCTRIAGE_API__PORT, 8321; 0 for any that is free.",
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="local|celery",
            help="Read here, in processes of its own, or hand on to a pool of workers.",
        ),
    ] = None,
    jobs: Jobs = None,
    insecure_no_auth: Annotated[
        bool,
        typer.Option(
            "--insecure-no-auth",
            help="Ask nobody for a key: whoever reaches this machine by its own name may do everything.",
        ),
    ] = False,
) -> None:
    """Serve the HTTP API: documents are sent, read and fetched at /v1/documents.

    SIGTERM and Ctrl-C end it within seconds; what is not read by then is read when it is started again.
    """
    from workers.api.server import run_server
    from workers.cli.worker import service_settings

    overrides = {
        "api": {name: value for name, value in (("host", host), ("port", port)) if value is not None},
        "executor": {
            name: value for name, value in (("kind", executor), ("jobs", jobs)) if value is not None
        },
    }
    run_server(service_settings(None, overrides), is_open=insecure_no_auth)
