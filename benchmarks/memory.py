"""Memory over a long scanned PDF: the parent and its worker processes, sampled while pages finish."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.pages import write_scanned_pdf
from pipeline.settings import ExecutorSettings, Settings
from workers.events import Event, IngestRequest, PageFinished
from workers.local import ingest

SAMPLE_EVERY_S = 0.5
WINDOW_PAGES = 10
"""A mark's memory is the peak over this many finished pages up to it: one page's peak depends on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Proportional set size (PSS), which counts shared pages once, when ``pages_done`` pages had finished."""

    pages_done: int
    parent_bytes: int
    children_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.parent_bytes + self.children_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRun:
    page_count: int
    jobs: int
    samples: tuple[Sample, ...]

    def peak_near(self, page: int) -> int:
        """Bytes: the highest total while the ``WINDOW_PAGES`` pages up to ``page`` were finishing."""
        return max(
            sample.total_bytes for sample in self.samples if page - WINDOW_PAGES <= sample.pages_done <= page
        )

    def peak_until(self, page: int) -> int:
        return max(sample.total_bytes for sample in self.samples if sample.pages_done <= page)


class Sampler:
    """Samples a process and its descendants in a thread, until closed. Whoever sees pages finish sets
    ``pages_done``."""

    def __init__(self, process: psutil.Process) -> None:
        self.pages_done = 0
        self.samples: list[Sample] = []
        self._process = process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def note(self, event: Event) -> None:
        if isinstance(event, PageFinished):
            self.pages_done += 1

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_EVERY_S):
            self.samples.append(
                Sample(
                    pages_done=self.pages_done,
                    parent_bytes=_pss_bytes((self._process,)),
                    children_bytes=_pss_bytes(self._process.children(recursive=True)),
                )
            )


def measure(page_count: int, *, jobs: int) -> MemoryRun:
    with TemporaryDirectory() as folder:
        pdf = Path(folder, "scanned.pdf")
        write_scanned_pdf(pdf, page_count)
        settings = Settings(home=Path(folder, "home"), executor=ExecutorSettings(jobs=jobs))
        request = IngestRequest(paths=(pdf,), out_dir=Path(folder, "out"))
        with Sampler(psutil.Process()) as sampler:
            ingest(request, settings=settings, on_event=sampler.note)
    if sampler.pages_done != page_count:
        raise RuntimeError(f"{sampler.pages_done} of {page_count} pages finished; the measurement is void")
    return MemoryRun(page_count=page_count, jobs=jobs, samples=tuple(sampler.samples))


def print_table(run: MemoryRun, console: Console, *, base_page: int = 50) -> None:
    table = Table(title=f"Memory (PSS), {run.page_count:,}-page scanned PDF, parent and {_workers(run)}")
    base_page = min(base_page, run.page_count)
    for heading in ("page", f"peak, last {WINDOW_PAGES} pages", "peak so far", f"against page {base_page}"):
        table.add_column(heading, justify="right")
    base = run.peak_near(base_page)
    for page in _marks(run):
        near = run.peak_near(page)
        table.add_row(str(page), _mib(near), _mib(run.peak_until(page)), f"{100 * (near / base - 1):+.1f} %")
    console.print(table)


def write_plot(run: MemoryRun, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
    pages = [sample.pages_done for sample in run.samples]
    totals_mib = [sample.total_bytes / 2**20 for sample in run.samples]
    parent_mib = [sample.parent_bytes / 2**20 for sample in run.samples]
    axes.plot(pages, totals_mib, lw=0.6, label="parent and children")
    axes.plot(pages, parent_mib, lw=0.9, label="parent")
    axes.set(xlabel="pages finished", ylabel="memory, MiB (PSS)", ylim=(0, None), xlim=(0, run.page_count))
    axes.set_title(f"{run.page_count:,}-page scanned PDF, {_workers(run)}")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _workers(run: MemoryRun) -> str:
    return f"{run.jobs} worker{'' if run.jobs == 1 else 's'}"


def _marks(run: MemoryRun) -> tuple[int, ...]:
    marks = (10, 50, 100, 200, 300, 500, 750, run.page_count)
    return tuple(sorted({mark for mark in marks if mark <= run.page_count}))


def _pss_bytes(processes: Iterable[psutil.Process]) -> int:
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total


def _mib(byte_count: int) -> str:
    return f"{byte_count / 2**20:,.0f} MiB"
