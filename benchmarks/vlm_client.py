"""Does the client keep a VLM service busy? ``python -m benchmarks.vlm_client`` sends real pages to a fake service with
a known service time and cap, and prints how busy it was, and what the client took.

The pages are scans that the CPU has read beforehand; the service runs in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.pages import sample_pages, write_scanned_pdf
from models.document import Document
from models.page import PageResult, Route
from pipeline.blobs import BlobStore
from pipeline.chargeback.entries import Account, read_page_entry
from pipeline.intake import inspect_source
from pipeline.outputs import page_json, page_row
from pipeline.page_pipeline import read_pages
from pipeline.planning.configured import load_plan
from pipeline.policy import load_policy
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from pipeline.visual_tokens import VisualTokenBudget
from tests.fakes.vlm_script import ChatRequest
from tests.fakes.vlm_server import FakeVlm, Fault, Script
from workers.accounts import open_account
from workers.bootstrap import build_engines, build_pdf_engine
from workers.messages import PageTranscribed, TranscriberSetup
from workers.vlm_desk import VlmDesk

OWNER = "benchmark"
WINDOW_PAGES = 10
"""A mark's memory is the median over so many finished pages up to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """``cap`` requests at once. Every other page takes ``slow_s``, the rest ``quick_s``."""

    cap: int
    quick_s: float
    slow_s: float
    texts: tuple[str, ...]

    @property
    def pages_per_s(self) -> float:
        return self.cap / statistics.fmean((self.quick_s, self.slow_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """What the service saw. ``cpu_s`` is its own."""

    requests: int
    busy_share: float
    peak_in_flight: int
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Of the client's process when a page ended: proportional set size, and CPU seconds with poppler's."""

    pss_bytes: int
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRun:
    service: Service
    busy: Busy
    samples: tuple[Sample, ...]
    routes: Mapping[Route, int]
    wall_s: float
    load: tuple[float, float]

    @property
    def cpu_s_per_page(self) -> float:
        """Between the first page's end and the last one's, so that starting is left out."""
        return (self.samples[-1].cpu_s - self.samples[0].cpu_s) / (len(self.samples) - 1)

    def memory_near(self, page: int) -> float:
        """Bytes."""
        window = self.samples[max(0, page - WINDOW_PAGES) : page]
        return statistics.median(sample.pss_bytes for sample in window)


def measure(page_count: int, *, cap: int, quick_s: float, slow_s: float, dpi: int) -> ClientRun:
    with TemporaryDirectory() as folder:
        home, pdf = Path(folder, "home"), Path(folder, "scanned.pdf")
        write_scanned_pdf(pdf, page_count)
        with contextlib.closing(open_store(home)) as store:
            document, reading_id, texts = prepare(pdf, store, _settings(home, dpi=dpi))
            service = Service(cap=cap, quick_s=quick_s, slow_s=slow_s, texts=texts)
            with served(service) as (url, told):
                settings = _settings(home, dpi=dpi, url=url, cap=cap)
                load_before = os.getloadavg()[0]
                started_s = time.monotonic()
                routes, samples = transcribe(store, settings, document, reading_id)
                wall_s = time.monotonic() - started_s
                busy = told()
    return ClientRun(
        service=service,
        busy=busy,
        samples=samples,
        routes=routes,
        wall_s=wall_s,
        load=(load_before, os.getloadavg()[0]),
    )


def prepare(pdf: Path, store: Store, settings: Settings) -> tuple[Document, int, tuple[str, ...]]:
    """Take in the document, and let each of its pages wait for the VLM as if it had been read: the first of each
    kind are, the others get their results. Also gives the texts of the kinds."""
    blobs = BlobStore(settings.home, settings.blobs)
    snapshot = blobs.take(pdf, max_bytes=2**30)
    document = inspect_source(snapshot.path, pdf=build_pdf_engine(), limits=settings.intake, password=None)
    blobs.keep(snapshot)
    store.pages.save_document(document)
    reading_id = store.pages.open_reading(document, "benchmark", force=False).reading_id
    kinds = _read_kinds(blobs.local_path(document.document_id), document, settings)
    account = open_account(OWNER, settings.chargeback, load_plan(settings.vlm))
    for number in range(1, document.page_count + 1):
        page = {**kinds[(number - 1) % len(kinds)], "page_number": number}
        _let_wait(store, document, reading_id, page, account)
    return document, reading_id, tuple(str(page["text"]) for page in kinds)


def _read_kinds(path: Path, document: Document, settings: Settings) -> tuple[Mapping[str, Any], ...]:
    numbers = range(1, min(len(sample_pages()), document.page_count) + 1)
    policy, plan = load_policy(None), load_plan(settings.vlm)
    engines = build_engines(settings)
    outcomes = [
        outcome for _, outcome in read_pages(path, document, numbers, engines, settings, policy, plan, None)
    ]
    return tuple(page_json(outcome) for outcome in outcomes if isinstance(outcome, PageResult))


def _let_wait(
    store: Store, document: Document, reading_id: int, page: Mapping[str, Any], account: Account
) -> None:
    number = page["page_number"]
    store.pages.claim_pages(reading_id, [number], owner=OWNER, lease_s=3600)
    store.pages.finish_page(
        reading_id,
        number,
        owner=OWNER,
        page=page,
        summary=page_row("", document.document_id, page),
        route=Route.OCR_DEGRADED,
        elapsed_s=page["elapsed_s"],
        entry=read_page_entry(
            account,
            page,
            document_id=document.document_id,
            reading_id=reading_id,
            is_final=False,
            cpu_s=None,
            when=datetime.now(UTC),
        ),
        awaits_vlm=True,
    )


def _settings(home: Path, *, dpi: int, url: str | None = None, cap: int | None = None) -> Settings:
    return Settings(
        home=home,
        route="vlm",
        rasterise={"dpi": dpi},
        read={"languages": "eng", "second_opinion": False},
        vlm={"url": url, "concurrency": cap},
    )


@contextlib.contextmanager
def served(service: Service) -> Iterator[tuple[str, Any]]:
    """The service's address, and a function that asks it how it went."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, service), name="fake-vlm")
    process.start()

    def told() -> Busy:
        ours.send("how was it?")
        busy: Busy = ours.recv()
        return busy

    try:
        yield ours.recv(), told
    finally:
        process.kill()
        process.join()


def serve(connection: Connection, service: Service) -> None:
    plan = load_plan(Settings().vlm)
    budget = VisualTokenBudget(family=plan.family, min_pixels=plan.min_pixels, max_pixels=plan.max_pixels)
    script = Script(
        answer=lambda request: service.texts[(_page_number(request) - 1) % len(service.texts)],
        fault=lambda request: Fault.SLOW if _page_number(request) % 2 else None,
        seconds_a_request=service.quick_s,
        slow_s=service.slow_s,
        concurrency=service.cap,
    )
    with FakeVlm(script, budget=budget) as fake:
        connection.send(fake.base_url)
        while True:
            connection.recv()
            connection.send(
                Busy(
                    requests=len(fake.seen),
                    busy_share=fake.busy_share,
                    peak_in_flight=fake.peak_in_flight,
                    cpu_s=sum(psutil.Process().cpu_times()[:2]),
                )
            )


def _page_number(request: ChatRequest) -> int:
    return int(request.request_id.split("/")[2])


def transcribe(
    store: Store, settings: Settings, document: Document, reading_id: int
) -> tuple[Mapping[Route, int], tuple[Sample, ...]]:
    """Every page to its end, as the executor has it done."""
    submission_id = store.submissions.start_submission(
        out_dir="none", cost_centre=OWNER, submitter=None, fingerprint="benchmark"
    )
    plan = load_plan(settings.vlm)
    account = open_account(OWNER, settings.chargeback, plan).of_submission(submission_id)
    setup = TranscriberSetup(settings=settings, plan=plan, account=account)
    routes: dict[Route, int] = {}
    samples: list[Sample] = []
    with contextlib.closing(VlmDesk(setup, store)) as desk:
        for number in range(1, document.page_count + 1):
            desk.add(reading_id, document, number, None)
        client = _client_process()
        while len(samples) < document.page_count:
            wait(desk.connections)
            for said in desk.hear():
                samples.append(_sample(client))
                if isinstance(said, PageTranscribed):
                    routes[said.route] = routes.get(said.route, 0) + 1
    return routes, tuple(samples)


def _client_process() -> psutil.Process:
    [pid] = [one.pid for one in multiprocessing.active_children() if one.name == "doctriage-vlm"]
    return psutil.Process(pid)


def _sample(process: psutil.Process) -> Sample:
    times = process.cpu_times()
    cpu_s = times.user + times.system + times.children_user + times.children_system
    return Sample(pss_bytes=process.memory_full_info().pss, cpu_s=cpu_s)


def print_table(run: ClientRun, console: Console) -> None:
    pages, service, busy = len(run.samples), run.service, run.busy
    early = min(50, pages)
    memory, before = run.memory_near(pages), run.memory_near(early)
    table = Table(title="The client and a VLM service of known speed", show_header=False)
    rows = (
        ("pages (transcribed)", f"{pages} ({run.routes.get(Route.VLM, 0)})"),
        ("service: cap, seconds a page", f"{service.cap}, {service.quick_s:g} or {service.slow_s:g}"),
        ("service: pages a second at most", f"{service.pages_per_s:.2f}"),
        ("busy share (goal 95 %)", f"{100 * busy.busy_share:.1f} %"),
        ("requests, most in flight", f"{busy.requests}, {busy.peak_in_flight}"),
        (f"client's memory at page {early}", f"{before / 2**20:.0f} MiB"),
        (
            f"client's memory at page {pages}",
            f"{memory / 2**20:.0f} MiB ({100 * (memory / before - 1):+.1f} %)",
        ),
        ("client's CPU, seconds a page", f"{run.cpu_s_per_page:.3f}"),
        ("service's own CPU, seconds a page", f"{busy.cpu_s / pages:.3f}"),
        ("wall clock", f"{run.wall_s:.0f} s"),
        ("load before, after", f"{run.load[0]:.1f}, {run.load[1]:.1f} on {os.cpu_count()} cores"),
    )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vlm_client", description=__doc__)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--cap", type=int, default=8, help="requests that the service works on at once")
    parser.add_argument(
        "--seconds", type=float, nargs=2, default=(2.0, 4.0), metavar=("QUICK", "SLOW"), help="by page"
    )
    parser.add_argument("--dpi", type=int, default=200, help="of the drawing: fewer cost the client less")
    options = parser.parse_args(arguments)
    quick_s, slow_s = options.seconds
    run = measure(options.pages, cap=options.cap, quick_s=quick_s, slow_s=slow_s, dpi=options.dpi)
    print_table(run, Console(width=None if Console().is_terminal else 110))


if __name__ == "__main__":
    main()
