"""``doctriage tokens``: what an image of some size costs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pipeline.visual_tokens import VisualTokenBudget

_SIZE = re.compile(r"([0-9]{1,9})[xX×]([0-9]{1,9})")


def tokens_command(
    size: Annotated[str, typer.Argument(metavar="WIDTHxHEIGHT", help="The image's size in pixels.")],
    model_family: Annotated[
        str | None, typer.Option(help="qwen2-vl, qwen2.5-vl or qwen3-vl; by default that of the plan.")
    ] = None,
    min_pixels: Annotated[
        int | None, typer.Option(min=1, help="Smaller images are enlarged to it; by default the plan's.")
    ] = None,
    max_pixels: Annotated[
        int | None, typer.Option(min=1, help="Larger images are shrunk to it; by default the plan's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the size an image is resized to, and its visual tokens."""
    from pipeline.visual_tokens import resized

    width_px, height_px = _parsed(size)
    budget = _budget(model_family, min_pixels, max_pixels)
    image = resized(width_px, height_px, budget)
    cell_px = budget.family.cell_px
    if as_json:
        answer = {
            "width_px": width_px,
            "height_px": height_px,
            "model_family": budget.family.name,
            "min_pixels": budget.min_pixels,
            "max_pixels": budget.max_pixels,
            "cell_px": cell_px,
            "resized_width_px": image.width_px,
            "resized_height_px": image.height_px,
            "tokens": image.token_count,
        }
        typer.echo(json.dumps(answer))
        return
    columns, rows = image.width_px // cell_px, image.height_px // cell_px
    typer.echo(f"resized to {image.width_px}x{image.height_px}: {image.token_count} visual tokens")
    typer.echo(
        f"({budget.family.name}: {columns} x {rows} cells of {cell_px} px; "
        f"{budget.min_pixels} to {budget.max_pixels} pixels an image)"
    )


def _parsed(size: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(size.strip())
    sides = (int(match[1]), int(match[2])) if match else (0, 0)
    if 0 in sides:
        raise typer.BadParameter(
            f"{size!r} is no size; give two whole numbers of pixels, like 1654x2339",
            param_hint="WIDTHxHEIGHT",
        )
    return sides


def _budget(name: str | None, min_pixels: int | None, max_pixels: int | None) -> VisualTokenBudget:
    """A bound not given is that of the plan, or the model's own where the other bound contradicts it."""
    from pipeline.planning.configured import load_plan
    from pipeline.settings import load_settings
    from pipeline.visual_tokens import VisualTokenBudget, model_family

    configured = load_plan(load_settings().vlm)
    try:
        family = configured.family if name is None else model_family(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--model-family") from error
    if min_pixels is None:
        ceiling = max_pixels or configured.max_pixels
        floors = (configured.min_pixels, family.processor_min_pixels, ceiling)
        min_pixels = next(floor for floor in floors if floor <= ceiling)
    if max_pixels is None:
        ceilings = (configured.max_pixels, family.processor_max_pixels, min_pixels)
        max_pixels = next(ceiling for ceiling in ceilings if ceiling >= min_pixels)
    try:
        return VisualTokenBudget(family=family, min_pixels=min_pixels, max_pixels=max_pixels)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--min-pixels / --max-pixels") from error
