"""``doctriage watch``: a folder is read as files arrive."""

from __future__ import annotations

import contextlib
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.arguments import named_path
from workers.cli.interrupts import INTERRUPTED, second_interrupt_ends_at_once
from workers.cli.pool_ingest import Chosen, ExecutorName, Priority, refuse_without_pool
from workers.cli.printable import printable
from workers.cli.reading_options import (
    USUAL_FORMATS,
    CostCentre,
    EngineName,
    Formats,
    Jobs,
    Languages,
    Password,
    PasswordFile,
    Plan,
    Profile,
    RouteName,
    VlmModel,
    VlmProfile,
    VlmUrl,
    VlmWait,
    all_passwords,
    parsed_formats,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.settings import Settings
    from workers.events import Event, IngestRequest
    from workers.watch import BatchReader, WatchRequest, WatchTotals

LONGEST_S = 7 * 86_400

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to watch.", parser=named_path)]


def watch_command(
    folder: Folder,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the results are written.", parser=named_path)
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Read what is there and has settled, and end, as cron wants it.")
    ] = False,
    poll: Annotated[
        float,
        typer.Option(min=0.1, max=LONGEST_S, metavar="SECONDS", help="Between two looks at the folder."),
    ] = 2,
    settle: Annotated[
        float,
        typer.Option(
            min=0, max=LONGEST_S, metavar="SECONDS", help="A whole file is read after so long without change."
        ),
    ] = 5,
    grace: Annotated[
        float,
        typer.Option(
            min=0,
            max=LONGEST_S,
            metavar="SECONDS",
            help="A file without its end is read, fails or is moved after so long without change.",
        ),
    ] = 60,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Names of files and folders to pass over; may be given again."),
    ] = None,
    done: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Files that were read are moved here.", parser=named_path),
    ] = None,
    failed: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Files that failed are moved here, with a note why.", parser=named_path
        ),
    ] = None,
    jobs: Jobs = None,
    engine: EngineName = None,
    lang: Languages = None,
    route: RouteName = None,
    profile: Profile = None,
    vlm_url: VlmUrl = None,
    vlm_model: VlmModel = None,
    vlm_profile: VlmProfile = None,
    plan: Plan = None,
    vlm_wait: VlmWait = None,
    cost_centre: CostCentre = None,
    formats: Formats = USUAL_FORMATS,
    password: Password = None,
    password_file: PasswordFile = None,
    executor: ExecutorName = None,
    priority: Priority = None,
) -> None:
    """Watch a folder and read what scanners, mail gateways and people put there, as soon as it is whole.

    A file that changes later is read again and its results replaced. What was read is remembered: after a restart
    only new and changed files are read. Ends on Ctrl-C or SIGTERM, and then exits with 0 on SIGTERM.
    """
    chosen = Chosen(
        executor=executor,
        jobs=jobs,
        route=route,
        profile=profile,
        languages=lang,
        engine=engine,
        vlm_url=vlm_url,
        vlm_model=vlm_model,
        vlm_profile=vlm_profile,
        plan=plan,
        vlm_wait_s=vlm_wait,
    )
    chosen_formats = parsed_formats(formats)
    passwords = all_passwords(password, password_file)

    from pipeline.chargeback.cost_centres import cost_centre_name
    from pipeline.settings import load_settings
    from workers.events import IngestRequest
    from workers.watch import WatchRequest

    settings = load_settings(chosen.overrides())
    if settings.executor.kind == "celery":
        chosen.refuse_what_workers_decide()
    else:
        refuse_without_pool({"--priority": priority})
    watch = WatchRequest(
        folder=folder.absolute(),
        out_dir=out.absolute(),
        home=settings.home.absolute(),
        done_dir=done and done.absolute(),
        failed_dir=failed and failed.absolute(),
        ignored=tuple(ignore or ()),
        poll_s=poll,
        settle_s=settle,
        grace_s=max(settle, grace),
        once=once,
    )
    _require_folders(watch)
    ingest = IngestRequest(
        paths=(watch.folder,),
        out_dir=watch.out_dir,
        cost_centre=None if cost_centre is None else cost_centre_name(cost_centre),
        formats=chosen_formats,
        passwords=passwords,
    )
    reader = partial(_reader, ingest, chosen, settings, priority)
    raise typer.Exit(_watched(watch, reader, settings))


def _watched(
    request: WatchRequest, new_reader: Callable[[Callable[[Event], None]], BatchReader], settings: Settings
) -> int:
    """The exit code."""
    from pipeline.publish import prepare_folder
    from workers.cli.terminal import open_console
    from workers.cli.watch_display import watch_display
    from workers.sources import RUN_FILES
    from workers.watch import Watch
    from workers.watch_lock import only_watch
    from workers.watch_memory import StoreMemory

    prepare_folder(request.out_dir, RUN_FILES)
    place = printable(str(request.folder))
    memory = StoreMemory(settings.home, settings.database_url, folder=request.folder, out_dir=request.out_dir)
    with (
        only_watch(request.out_dir),
        contextlib.closing(memory),
        second_interrupt_ends_at_once() as interrupts,
        watch_display(open_console(), f"watching {place}") as display,
        contextlib.closing(new_reader(display.on_event)) as reader,
    ):
        watch = Watch(
            request=request,
            reader=reader,
            memory=memory,
            on_event=display.on_watch_event,
        )
        with contextlib.suppress(KeyboardInterrupt):
            watch.run()
    _say_what_was_done(watch.totals, is_stopped=interrupts.first is not None)
    if interrupts.first is not None:
        return 0 if interrupts.first == signal.SIGTERM else INTERRUPTED
    return 1 if watch.totals.failed else 0


def _reader(
    ingest: IngestRequest,
    chosen: Chosen,
    settings: Settings,
    priority: int | None,
    on_event: Callable[[Event], None],
) -> BatchReader:
    """What reads the batches, by the executor that is set."""
    if settings.executor.kind == "celery":
        from workers.cluster.watch_reader import PoolReader

        asked = chosen.request(ingest, priority=priority)
        return PoolReader(asked=asked, settings=settings, on_event=on_event)
    from workers.local_run import run_terms
    from workers.watch_local import LocalReader

    terms = run_terms(settings, ingest.cost_centre, None)
    return LocalReader(terms=terms, request=ingest, on_event=on_event)


def _require_folders(request: WatchRequest) -> None:
    """That the folders are there, and none is two things at once."""
    from workers.local_run import refuse_state_folder

    if not request.folder.is_dir():
        raise typer.BadParameter(f"{printable(str(request.folder))}: no such folder", param_hint="DIR")
    refuse_state_folder((request.folder,), request.home)
    watched = request.folder.resolve()
    for option, folder in (("--done", request.done_dir), ("--failed", request.failed_dir)):
        if folder is not None and folder.resolve() == watched:
            raise typer.BadParameter("it is the watched folder; name another", param_hint=option)
        if folder is not None and folder.exists() and not folder.is_dir():
            raise typer.BadParameter(f"{printable(str(folder))}: is a file; name a folder", param_hint=option)


def _say_what_was_done(totals: WatchTotals, *, is_stopped: bool) -> None:
    stopped = "stopped; " if is_stopped else ""
    files = "1 file" if totals.read == 1 else f"{totals.read:,} files"
    failed = f", {totals.failed:,} failed" if totals.failed else ""
    typer.echo(f"{stopped}{files} read{failed}", err=True)
