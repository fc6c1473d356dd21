"""``doctriage openapi``: the schema of the HTTP API, without a server."""

from __future__ import annotations

import json

import typer


def openapi_command() -> None:
    """Print the OpenAPI document of the HTTP API, as `doctriage serve` gives it at /v1/openapi.json."""
    from workers.api.app import described_app

    typer.echo(json.dumps(described_app().openapi(), ensure_ascii=False, indent=1))
