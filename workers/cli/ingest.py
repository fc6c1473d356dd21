"""``doctriage ingest``: folders and files become text."""

from __future__ import annotations

import errno
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.errors import SettingsError
from models.page import RoutePolicy, TriageProfile
from workers.cli.arguments import named_path, password_text
from workers.cli.interrupts import INTERRUPTED, second_interrupt_ends_at_once
from workers.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workers.events import IngestReport

FORMATS = ("markdown", "json")


class Engine(StrEnum):
    TESSERACT = "tesseract"
    PADDLEOCR = "paddleocr"


def ingest_command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="Files and folders to read.", parser=named_path)
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the results are written.", parser=named_path)
    ],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Pages read at the same time; by default one a CPU.")
    ] = None,
    engine: Annotated[Engine | None, typer.Option(help="The OCR engine.")] = None,
    lang: Annotated[
        str | None,
        typer.Option(metavar="CODES", help="Languages of the pages, like eng+deu; auto finds out."),
    ] = None,
    route: Annotated[
        RoutePolicy | None,
        typer.Option(help="auto: triage decides; ocr: never the VLM; vlm: every page that is not blank."),
    ] = None,
    profile: Annotated[
        TriageProfile | None, typer.Option(help="How readily pages go to the VLM; by default balanced.")
    ] = None,
    vlm_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The VLM's OpenAI-compatible API, like http://gpu:8000/v1."),
    ] = None,
    vlm_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model's name there; by default the plan's.")
    ] = None,
    vlm_profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The model's profile, without --plan; by default qwen2.5-vl-7b-fp8."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What `doctriage plan --out` wrote for the server.", parser=named_path
        ),
    ] = None,
    vlm_wait: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long a page waits for a VLM that does not answer; by default 120.",
        ),
    ] = None,
    cost_centre: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who pays: a team, or team/project.")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help="markdown, json or both.")
    ] = ",".join(FORMATS),
    password: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Opens encrypted PDFs; may be given again, each is tried.",
            parser=password_text,
        ),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A file with a password a line; - is standard input.", parser=named_path
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Read pages again that an earlier run finished.")
    ] = False,
) -> None:
    """Read documents into Markdown and JSON, and send the pages that need it to a vision-language model (VLM).

    Pages that an earlier run finished under the same settings are not read again: after Ctrl-C, or a crash,
    the same command goes on where it stopped. Exits with 1 when a document or a page failed.
    """
    _require_existing(paths)
    overrides = _overrides(
        route=route,
        executor={"jobs": jobs},
        triage={"profile": profile and profile.value},
        read={"engine": engine and engine.value, "languages": lang},
        vlm={
            "url": vlm_url,
            "model": vlm_model,
            "profile": vlm_profile,
            "plan_file": plan,
            "wait_s": vlm_wait,
        },
    )
    chosen_formats = _parsed_formats(formats)
    passwords = (*(password or ()), *(_read_passwords(password_file) if password_file else ()))

    from pipeline.chargeback.cost_centres import cost_centre_name
    from pipeline.settings import load_settings
    from workers import local
    from workers.cli.progress import progress_display
    from workers.cli.tables import print_report
    from workers.cli.terminal import open_console

    settings = load_settings(overrides)
    request = local.IngestRequest(
        paths=tuple(paths),
        out_dir=out,
        cost_centre=None if cost_centre is None else cost_centre_name(cost_centre),
        formats=chosen_formats,
        passwords=passwords,
        force=force,
    )
    with second_interrupt_ends_at_once(), progress_display(open_console(stderr=True)) as progress:
        report = local.ingest(request, settings=settings, on_event=progress.on_event)
    if not report.documents and not report.failures and not report.is_interrupted:
        names = ", ".join(printable(str(path)) for path in paths)
        typer.echo(f"nothing to read: no file in {names}", err=True)
        return
    print_report(open_console(), report, out)
    raise typer.Exit(_exit_code(report))


def _exit_code(report: IngestReport) -> int:
    if report.is_interrupted:
        typer.echo("stopped; finished pages are kept, and the same command goes on from here", err=True)
        return INTERRUPTED
    return 1 if report.failures or report.failed_pages else 0


def _require_existing(paths: Sequence[Path]) -> None:
    for path in paths:
        if not os.path.lexists(path):
            pattern = " (the pattern matches nothing)" if any(sign in str(path) for sign in "*?[") else ""
            raise typer.BadParameter(
                f"{printable(str(path))}: no such file or folder{pattern}", param_hint="PATH"
            )


def _overrides(route: RoutePolicy | None, **sections: dict[str, object]) -> dict[str, object]:
    """What the command line sets, by section; the environment and the defaults decide the rest."""
    given = {
        name: {key: value for key, value in section.items() if value is not None}
        for name, section in sections.items()
    }
    overrides: dict[str, object] = {name: section for name, section in given.items() if section}
    return overrides if route is None else {"route": route, **overrides}


def _parsed_formats(names: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in chosen if name not in FORMATS]
    if unknown or not chosen:
        raise typer.BadParameter(
            f"{names!r}: choose from {', '.join(FORMATS)}, separated by commas", param_hint="--format"
        )
    return chosen


def _read_passwords(path: Path) -> tuple[str, ...]:
    """One password a line. A space may belong to a password, so only line ends are removed."""
    try:
        text = _standard_input() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; give a file with a password a line") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 text; save it as UTF-8 with a password a line") from error
    passwords = tuple(line for line in text.splitlines() if line)
    if not passwords:
        raise SettingsError(f"{path}: holds no password; write one a line")
    return passwords


def _standard_input() -> str:
    if sys.stdin is None:  # closed when the program was started
        raise OSError(errno.EBADF, "standard input is closed")
    return sys.stdin.read()
