"""``doctriage worker``: one of the pool's workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from models.pool import Queue
from workers.cli.arguments import one_of, whole_number

if TYPE_CHECKING:
    from pipeline.settings import Settings

GREATEST_PORT = 65_535
MOST_AT_A_TIME = 4_096

MetricsPort = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole_number(1, GREATEST_PORT),
        help="Answer Prometheus at this port; by default DOCTRIAGE_POOL__METRICS_PORT, or not.",
    ),
]


def worker_command(
    queues: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Any of intake, ocr and assemble, or vlm alone, with commas in between."
        ),
    ] = "intake,ocr,assemble",
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, MOST_AT_A_TIME),
            help="Pieces of work at a time; by default one a CPU for ocr, the plan's and 8 more for vlm, else 1.",
        ),
    ] = None,
    metrics_port: MetricsPort = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The worker's name on this machine, unlike any other there."),
    ] = None,
) -> None:
    """Work for the pool: take what `doctriage ingest --executor celery` brings, until told to stop.

    SIGTERM and Ctrl-C end it after the page under way; the second Ctrl-C at once, and its pages go to others.
    """
    from workers.cluster.worker import run_worker
    from workers.cluster.worker_plan import plan_worker

    chosen = [one_of(Queue)(word.strip()) for word in queues.split(",") if word.strip()]
    settings = service_settings(metrics_port)
    plan = plan_worker(settings, chosen, concurrency=concurrency, name=name)
    raise typer.Exit(run_worker(settings, plan))


def service_settings(
    metrics_port: int | None, overrides: Mapping[str, Mapping[str, object]] | None = None
) -> Settings:
    """What a service does is logged unless the settings say what is. ``overrides`` are by section."""
    from pipeline.settings import load_settings

    given: dict[str, object] = {name: section for name, section in (overrides or {}).items() if section}
    if metrics_port is not None:
        given["pool"] = {"metrics_port": metrics_port}
    settings = load_settings(given)
    if "log_level" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"log_level": "info"})
