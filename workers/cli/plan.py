"""``doctriage plan``: how a VLM service is started, and what may be asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.arguments import named_path
from workers.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.planning.model_profiles import ModelProfile
    from pipeline.planning.plan_wishes import PlanWishes
    from pipeline.planning.serving_plan import ServingPlan


def plan_command(
    profile: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="A shipped model profile, or your own .toml file.")
    ] = "qwen2.5-vl-7b-fp8",
    gpu: Annotated[str, typer.Option(metavar="NAME", help="The card, such as h100-80gb.")] = "h100-80gb",
    gpus: Annotated[int, typer.Option(min=1, help="Cards that share the model.")] = 1,
    pages_per_prompt: Annotated[int, typer.Option(min=1, help="Pages of one request, at most.")] = 1,
    visual_tokens: Annotated[
        int | None, typer.Option(min=1, help="For each page; by default up to 2240, and at least 1024.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Requests at a time; by default what the KV cache holds.")
    ] = None,
    ttft_s: Annotated[
        float | None, typer.Option(help="Seconds to the first token, at most; needs the prefill rate.")
    ] = None,
    prefill_tokens_per_s: Annotated[
        float | None, typer.Option(help="Prompt tokens a second, as you measured it.")
    ] = None,
    kv_dtype: Annotated[str, typer.Option(metavar="auto|fp8", help="The type of the KV cache.")] = "auto",
    max_output_tokens: Annotated[int, typer.Option(min=1, help="The longest answer.")] = 4096,
    context_tokens: Annotated[
        int | None, typer.Option(min=1, help="Prompt and answer together; by default 16384.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="NAME|DIR", help="What vLLM loads, instead of the profile's hub name."),
    ] = None,
    check_model: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Compare the profile with this model folder first.", parser=named_path
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plan file.", parser=named_path)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Compute how vLLM is started for a model on a card, line by line, and print the command.

    deploy/vllm/serve.sh starts vLLM from the plan file. Wishes that do not fit together are refused with the
    arithmetic (exit code 1).
    """
    from pipeline.named_files import named_file, require_place
    from pipeline.planning.model_folder import check_model_folder
    from pipeline.planning.planner import make_plan

    if out is not None:
        require_place(out, "--out")
    chosen = _profile(profile)
    wishes = _wishes(
        gpu,
        kv_dtype,
        {
            "gpu_count": gpus,
            "pages_per_prompt": pages_per_prompt,
            "visual_tokens": visual_tokens,
            "concurrency": concurrency,
            "ttft_s": ttft_s,
            "prefill_tokens_per_s": prefill_tokens_per_s,
            "max_output_tokens": max_output_tokens,
            "context_tokens": context_tokens,
            "checkpoint": checkpoint,
        },
    )
    if check_model is not None:
        check_model_folder(chosen, check_model)
    plan = make_plan(chosen, wishes)
    if out is not None:
        with named_file(out) as stream:
            stream.write(plan.to_json())
    if as_json:
        typer.echo(plan.to_json(), nl=False)
    else:
        _print(plan, checked=check_model, written=out)


def _profile(name_or_path: str) -> ModelProfile:
    from pipeline.planning.model_profiles import load_profile
    from pipeline.settings import load_settings

    load_settings()
    return load_profile(name_or_path)


def _wishes(gpu: str, kv_dtype: str, figures: Mapping[str, object]) -> PlanWishes:
    from pipeline.planning.gpus import gpu_named
    from pipeline.planning.plan_wishes import PlanWishes
    from pipeline.planning.serving_plan import KvDtype

    try:
        card = gpu_named(gpu)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--gpu") from error
    if kv_dtype not in tuple(KvDtype):
        raise typer.BadParameter(f"{kv_dtype!r} is none of auto, fp8", param_hint="--kv-dtype")
    try:
        return PlanWishes(gpu=card, kv_dtype=KvDtype(kv_dtype), **figures)  # type: ignore[arg-type]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _print(plan: ServingPlan, *, checked: Path | None, written: Path | None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from workers.cli.terminal import open_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, side in (("what", "left"), ("how", "left"), ("value", "right")):
        table.add_column(heading, overflow="fold", justify=side)  # type: ignore[arg-type]
    for line in plan.lines:
        table.add_row(line.what, Text(line.how), Text(line.value))
    open_console().print(table)
    if checked is not None:
        typer.echo(f"{printable(str(checked))} is the model of profile {plan.profile}")
    typer.echo(_command_text(plan.serve_command()))
    if written is not None:
        typer.echo(f"plan written to {printable(str(written))}; deploy/vllm/serve.sh starts it")


def _command_text(command: tuple[str, ...]) -> str:
    """For a shell, a flag a line."""
    import shlex

    return " ".join(
        f"\\\n  {shlex.quote(word)}" if word.startswith("--") else shlex.quote(word) for word in command
    )
