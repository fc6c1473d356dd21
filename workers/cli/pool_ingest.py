"""``doctriage ingest --executor celery``: submit to the pool, follow, and say how to come back to it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.choices import RoutePolicy, TriageProfile
from workers.cli.interrupts import second_interrupt_ends_at_once
from workers.cli.reading_options import Engine, overrides

if TYPE_CHECKING:
    from models.errors import PoolBusy
    from pipeline.settings import Settings
    from workers.cluster.ingesting import PoolRequest
    from workers.events import IngestReport, IngestRequest


class Executor(StrEnum):
    LOCAL = "local"
    CELERY = "celery"


ExecutorName = Annotated[
    Executor | None,
    typer.Option("--executor", help="local: processes of this machine; celery: the pool of workers."),
]
Priority = Annotated[
    int | None, typer.Option(min=0, max=9, help="With the pool or a server, 0 last to 9 first; by default 5.")
]
Detach = Annotated[bool, typer.Option("--detach", help="With the pool, return once everything is submitted.")]


def refuse_without_pool(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter("only with --executor celery", param_hint=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the command line names of how, and by whom, pages are read."""

    executor: Executor | None
    jobs: int | None
    route: RoutePolicy | None
    profile: TriageProfile | None
    languages: str | None
    engine: Engine | None
    vlm_url: str | None
    vlm_model: str | None
    vlm_profile: str | None
    plan: Path | None
    vlm_wait_s: float | None

    def overrides(self) -> dict[str, object]:
        return overrides(
            route=self.route,
            executor={"kind": self.executor and self.executor.value, "jobs": self.jobs},
            triage={"profile": self.profile and self.profile.value},
            read={"engine": self.engine and self.engine.value, "languages": self.languages},
            vlm={
                "url": self.vlm_url,
                "model": self.vlm_model,
                "profile": self.vlm_profile,
                "plan_file": self.plan,
                "wait_s": self.vlm_wait_s,
            },
        )

    def refuse_what_workers_decide(self) -> None:
        """Options that are the workers' own business where the pool reads."""
        given = {
            "--jobs": self.jobs,
            "--vlm-url": self.vlm_url,
            "--vlm-model": self.vlm_model,
            "--vlm-profile": self.vlm_profile,
            "--plan": self.plan,
            "--vlm-wait": self.vlm_wait_s,
        }
        for name, value in given.items():
            if value is not None:
                raise typer.BadParameter(
                    "the pool's workers have settings of their own for that; leave it out", param_hint=name
                )

    def request(self, request: IngestRequest, *, priority: int | None) -> PoolRequest:
        from models.pool import DEFAULT_PRIORITY
        from workers.cluster.ingesting import PoolRequest
        from workers.cluster.wishes import Wishes

        wishes = Wishes(
            route=self.route,
            profile=self.profile,
            languages=self.languages,
            engine=self.engine and self.engine.value,
            formats=request.formats,
            force=request.force,
        )
        return PoolRequest(
            request=request, wishes=wishes, priority=DEFAULT_PRIORITY if priority is None else priority
        )


def read_with_pool(
    request: IngestRequest, chosen: Chosen, settings: Settings, *, priority: int | None, detach: bool
) -> IngestReport | None:
    """None where nobody waits for the end."""
    from models.errors import DoctriageError
    from workers.cli.progress import progress_display
    from workers.cli.terminal import open_console
    from workers.cluster.ingesting import fetch, submit

    asked = chosen.request(request, priority=priority)
    opened: list[int] = []

    def on_opened(number: int) -> None:
        opened.append(number)
        if not detach:
            typer.echo(
                f"submission {number}; `doctriage submissions show {number}` says how far it is", err=True
            )

    with second_interrupt_ends_at_once(), progress_display(open_console(stderr=True)) as progress:
        try:
            submission_id = submit(
                asked,
                settings=settings,
                on_event=progress.on_event,
                on_busy=_say_busy,
                on_opened=on_opened,
            )
        except (KeyboardInterrupt, DoctriageError):
            for number in opened:
                _say_how_to_return("the pool reads what was sent", number, request.out_dir)
            raise
        if detach:
            come_back = _fetch_command(submission_id, request.out_dir)
            typer.echo(f"submission {submission_id}; `{come_back}` brings the results", err=True)
            return None
        report = fetch(
            submission_id,
            request.out_dir,
            settings=settings,
            formats=request.formats,
            on_event=progress.on_event,
        )
    if report.is_interrupted:
        _say_how_to_return("the pool goes on", submission_id, request.out_dir)
    return report


def _fetch_command(submission_id: int, out_dir: Path) -> str:
    return f"doctriage submissions fetch {submission_id} --out {shlex.quote(str(out_dir))}"


def _say_how_to_return(what_goes_on: str, submission_id: int, out_dir: Path) -> None:
    typer.echo(
        f"{what_goes_on}: `{_fetch_command(submission_id, out_dir)}` brings the results, "
        f"`doctriage submissions cancel {submission_id}` stops it",
        err=True,
    )


def _say_busy(error: PoolBusy) -> None:
    typer.echo(f"{error}; waiting", err=True)
