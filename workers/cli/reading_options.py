"""Options of every command that reads documents, and what they make of the settings."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from models.choices import RoutePolicy, TriageProfile
from models.errors import SettingsError
from pipeline.exports.formats import DEFAULT_FORMATS, FORMATS
from workers.cli.arguments import named_path, password_text
from workers.cli.printable import printable

FORMAT_NAMES = ", ".join(FORMATS)
USUAL_FORMATS = ",".join(DEFAULT_FORMATS)


class Engine(StrEnum):
    TESSERACT = "tesseract"
    PADDLEOCR = "paddleocr"


Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH…", help="Files and folders to read.", parser=named_path)
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Pages read at the same time; by default one a CPU.")]
EngineName = Annotated[Engine | None, typer.Option(help="The OCR engine.")]
Languages = Annotated[
    str | None,
    typer.Option(metavar="CODES", help="Languages of the pages, like eng+deu; auto finds out."),
]
RouteName = Annotated[
    RoutePolicy | None,
    typer.Option(help="auto: triage decides; ocr: never the VLM; vlm: every page that is not blank."),
]
Profile = Annotated[
    TriageProfile | None, typer.Option(help="How readily pages go to the VLM; by default balanced.")
]
VlmUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The VLM's OpenAI-compatible API, like http://gpu:8000/v1."),
]
VlmModel = Annotated[
    str | None, typer.Option(metavar="NAME", help="The model's name there; by default the plan's.")
]
VlmProfile = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The model's profile, without --plan; by default qwen2.5-vl-7b-fp8."),
]
Plan = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What `doctriage plan --out` wrote for the server.", parser=named_path),
]
VlmWait = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="SECONDS", help="How long a page waits for a VLM that does not answer; by default 120."
    ),
]
Formats = Annotated[
    str, typer.Option("--format", metavar="LIST", help=f"What is written, of {FORMAT_NAMES}.")
]
CostCentre = Annotated[str | None, typer.Option(metavar="NAME", help="Who pays: a team, or team/project.")]
Password = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="Opens encrypted PDFs; may be given again, each is tried.",
        parser=password_text,
    ),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="A file with a password a line; - is standard input.", parser=named_path
    ),
]


def require_existing(paths: Sequence[Path]) -> None:
    for path in paths:
        if not os.path.lexists(path):
            pattern = " (the pattern matches nothing)" if any(sign in str(path) for sign in "*?[") else ""
            raise typer.BadParameter(
                f"{printable(str(path))}: no such file or folder{pattern}", param_hint="PATH"
            )


def overrides(route: RoutePolicy | None, **sections: dict[str, object]) -> dict[str, object]:
    """What the command line sets, by section; the environment and the defaults decide the rest."""
    given = {
        name: {key: value for key, value in section.items() if value is not None}
        for name, section in sections.items()
    }
    named: dict[str, object] = {name: section for name, section in given.items() if section}
    return named if route is None else {"route": route, **named}


def all_passwords(given: Sequence[str] | None, path: Path | None) -> tuple[str, ...]:
    """Those given, then those of the file."""
    return (*(given or ()), *(_read_passwords(path) if path else ()))


def parsed_formats(names: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in chosen if name not in FORMATS]
    if unknown or not chosen:
        raise typer.BadParameter(
            f"{names!r}: choose from {FORMAT_NAMES}, separated by commas", param_hint="--format"
        )
    return chosen


def paths_in_words(paths: Sequence[Path]) -> str:
    return ", ".join(printable(str(path)) for path in paths)


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
