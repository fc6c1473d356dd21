"""``doctriage doctor``: is everything here that reading needs?"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workers.doctor import Check


def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check engines, languages, models, disk, state folder, and the services that the settings name, and say what to
    install.

    Exits with 1 when something required is missing.
    """
    from pipeline.settings import load_settings
    from workers.doctor import is_ready, packages_to_install, run_checks
    from workers.doctor_services import check_services

    settings = load_settings()
    checks = (*run_checks(settings), *check_services(settings))
    ready, packages = is_ready(checks), packages_to_install(checks)
    if as_json:
        rows = [dataclasses.asdict(check) for check in checks]
        typer.echo(json.dumps({"ready": ready, "packages": packages, "checks": rows}))
    else:
        _print_checks(checks)
        if packages:
            typer.echo(f"install: apt-get install {' '.join(packages)}")
        typer.echo("ready" if ready else "something required is missing")
    raise typer.Exit(0 if ready else 1)


def _print_checks(checks: Sequence[Check]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from workers.cli.terminal import open_console
    from workers.doctor import CheckState

    styles = {CheckState.OK: "green", CheckState.WARNING: "yellow", CheckState.MISSING: "bold red"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("check", "state", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for check in checks:
        table.add_row(
            Text(check.name),
            Text(check.state.value, style=styles[check.state]),
            Text(printable(check.found)),
            Text(printable(check.advice)),
        )
    open_console().print(table)
