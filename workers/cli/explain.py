"""``doctriage explain``: one page's reasons, and a picture of its boxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.errors import OutputNotWritable, PageFailed, PageNotFound
from workers.cli.arguments import named_path, password_text
from workers.cli.printable import printable

if TYPE_CHECKING:
    from PIL import Image

    from pipeline.settings import Settings
    from workers.explain import ExplainedPage
    from workers.local import StoredPage

NAME_KEPT = 50
"""Characters of a source's name in that of its picture: file systems allow 255 bytes."""


def explain_command(
    doc: Annotated[
        str,
        typer.Argument(
            metavar="DOC",
            help="A source's name, its JSON output, the file itself, or 8 digits or more of its id.",
        ),
    ],
    page_number: Annotated[int, typer.Argument(metavar="PAGE", min=1, help="Counted from 1.")],
    overlay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The PNG file the picture goes to; by default here, named after DOC.",
            parser=named_path,
        ),
    ] = None,
    no_overlay: Annotated[bool, typer.Option("--no-overlay", help="Draw no picture.")] = False,
    password: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Opens the PDF again to draw it.", parser=password_text),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the page's JSON instead of words.")] = False,
    signals: Annotated[
        bool, typer.Option("--signals", help="List every signal measured, not only reasons.")
    ] = False,
) -> None:
    """Say why a page went its way, each reason with its measured value and threshold, and draw its boxes."""
    from pipeline.settings import load_settings
    from workers.explain import explanation, measured_signals

    _require_png(overlay)
    settings = load_settings()
    explained = _found(doc, page_number, settings)
    if as_json:
        typer.echo(json.dumps(explained.page, ensure_ascii=False))
    else:
        for line in explanation(explained):
            typer.echo(printable(line))
        if signals:
            typer.echo("signals measured:")
            for line in measured_signals(explained.page):
                typer.echo(f"  - {printable(line)}")
    if not no_overlay:
        path = overlay or Path(f"{Path(explained.source).name[:NAME_KEPT]}.page-{page_number}.png")
        _write_overlay(path, explained, _stored(explained, settings), settings, password)
        typer.echo(f"boxes drawn in {printable(str(path))}", err=as_json)


def _require_png(overlay: Path | None) -> None:
    """By that suffix, too, the next ingest knows the picture for one of ours."""
    if overlay is not None and overlay.suffix.lower() != ".png":
        raise typer.BadParameter(
            f"{printable(str(overlay))}: the picture is a PNG; name a file that ends in .png",
            param_hint="--overlay",
        )


def _found(doc: str, page_number: int, settings: Settings) -> ExplainedPage:
    from workers import local
    from workers.explain import ExplainedPage, as_page_json, page_of_output

    path = Path(doc)
    if path.suffix == ".json" and path.is_file():
        return page_of_output(path, page_number)
    stored = local.find_page(doc, page_number, settings=settings)
    return ExplainedPage(source=stored.source, document_id=stored.document_id, page=as_page_json(stored.page))


def _stored(explained: ExplainedPage, settings: Settings) -> StoredPage:
    """Our copy of the document; a JSON output can be explained without it, but not drawn."""
    from workers import local

    number = explained.page["page_number"]
    try:
        return local.find_page(explained.document_id, number, settings=settings)
    except PageNotFound as error:
        raise PageNotFound(
            f"{explained.source}: not in {settings.home}, so it cannot be drawn; "
            "ingest it again, or pass --no-overlay"
        ) from error


def _write_overlay(
    path: Path, explained: ExplainedPage, stored: StoredPage, settings: Settings, password: str | None
) -> None:
    from PIL.PngImagePlugin import PngInfo

    from pipeline.overlay import draw_overlay
    from workers.sources import OVERLAY_SOFTWARE

    page = explained.page
    image = _page_image(stored, settings, password)
    if image.size != (
        page["width_px"],
        page["height_px"],
    ):  # read at another resolution than today's settings
        image = image.resize((page["width_px"], page["height_px"]))
    picture = draw_overlay(image, page)
    mark = PngInfo()
    mark.add_text("Software", OVERLAY_SOFTWARE)
    try:
        picture.save(path, format="PNG", pnginfo=mark)
    except OSError as error:
        raise OutputNotWritable(f"{path}: {error.strerror}; name another file with --overlay") from error


def _page_image(stored: StoredPage, settings: Settings, password: str | None) -> Image.Image:
    from pipeline.rasterise import rasterise_pages
    from workers.bootstrap import build_pdf_engine

    pages = rasterise_pages(
        stored.blob_path,
        stored.media_type,
        [stored.page_number],
        pdf=build_pdf_engine(),
        settings=settings.rasterise,
        password=password,
    )
    for _, outcome in pages:
        if isinstance(outcome, PageFailed):
            raise outcome
        return outcome.image
    raise PageNotFound(f"{stored.source}: page {stored.page_number} could not be drawn again")
