"""``doctriage beat``: looks after the pool."""

from __future__ import annotations

from typing import Annotated

import typer

from workers.cli.worker import MetricsPort, service_settings


def beat_command(
    every: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            max=3_600,
            metavar="SECONDS",
            help="Between two looks; by default DOCTRIAGE_POOL__RECONCILE_EVERY_S, 10.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once and end, as cron wants it.")] = False,
    metrics_port: MetricsPort = None,
) -> None:
    """Look after the pool: replace lost tickets, free what lost workers held, end what nobody ends.

    One is enough; several do no harm.
    """
    from workers.cluster.beat import run_beat

    settings = service_settings(metrics_port)
    run_beat(settings, every_s=settings.pool.reconcile_every_s if every is None else every, once=once)
