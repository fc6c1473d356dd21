"""``doctriage export``: documents that were read before, in another form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.errors import DocumentFailed, OutputImpossible, PageNotFound
from workers.cli.arguments import named_path
from workers.cli.printable import printable
from workers.cli.reading_options import (
    FORMAT_NAMES,
    Password,
    PasswordFile,
    all_passwords,
    parsed_formats,
)

if TYPE_CHECKING:
    from workers.exporting import Exporter, ReadDocument

STANDARD_OUTPUT = Path("-")


def export_command(
    references: Annotated[
        list[str],
        typer.Argument(
            metavar="REFERENCE…",
            help="Sources by name, the files themselves, or 8 digits or more of their ids.",
        ),
    ],
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help=f"What is written, of {FORMAT_NAMES}.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder the files go to.", parser=named_path),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file one document goes to in one format; - is standard output.",
            parser=named_path,
        ),
    ] = None,
    password: Password = None,
    password_file: PasswordFile = None,
) -> None:
    """Write documents that an ingest has read in other formats. No page is read again.

    Exits with 1 when a document was not written.
    """
    chosen = parsed_formats(formats)
    _require_one_place(references, chosen, out, output)
    passwords = all_passwords(password, password_file)

    from pipeline.settings import load_settings
    from workers.exporting import opened_exporter

    with opened_exporter(load_settings(), passwords) as exporter:
        if output is not None:
            _write_one(exporter, references[0], chosen[0], output)
            return
        assert out is not None
        failed = [reference for reference in references if not _is_written(exporter, reference, chosen, out)]
    if failed:
        raise typer.Exit(1)


def _require_one_place(
    references: list[str], formats: tuple[str, ...], out: Path | None, output: Path | None
) -> None:
    if (out is None) == (output is None):
        raise typer.BadParameter("give a folder with --out, or a file with -o", param_hint="--out")
    if output is not None and (len(references) > 1 or len(formats) > 1):
        raise typer.BadParameter(
            "one file holds one document in one format; give --out for more", param_hint="-o"
        )


def _write_one(exporter: Exporter, reference: str, name: str, output: Path) -> None:
    read = exporter.find(reference)
    if output == STANDARD_OUTPUT:
        exporter.write_to(read, name, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        exporter.write_file(read, name, output)


def _is_written(exporter: Exporter, reference: str, formats: tuple[str, ...], out: Path) -> bool:
    """Whether all formats are there; one that cannot be made keeps no other."""
    try:
        read = exporter.find(reference)
        failed = [name for name in formats if not _is_format_written(exporter, read, name, out)]
    except (PageNotFound, DocumentFailed) as error:
        _tell(error)
        return False
    return not failed


def _is_format_written(exporter: Exporter, read: ReadDocument, name: str, out: Path) -> bool:
    try:
        paths = exporter.write_files(read, [name], out)
    except OutputImpossible as error:
        _tell(error)
        return False
    for path in paths:
        typer.echo(printable(str(path)))
    return True


def _tell(error: PageNotFound | DocumentFailed) -> None:
    typer.echo(f"doctriage: {printable(str(error))}", err=True)
