"""Pages a minute: doctriage, and the bare engine looped over the same page images."""

from __future__ import annotations

import multiprocessing
import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytesseract
from PIL import Image
from rich.console import Console
from rich.table import Table

from benchmarks.pages import PAGE_DPI
from pipeline.settings import ExecutorSettings, Settings
from workers.events import Event, IngestRequest, PageFinished
from workers.local import ingest

LANGUAGE = "eng"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pass over the page images. ``steady_s`` is the time from the first finished page to the last."""

    page_count: int
    wall_s: float
    steady_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """All rounds of doctriage and of the bare engine at one number of processes."""

    jobs: int
    doctriage: tuple[Run, ...]
    bare: tuple[Run, ...]

    @property
    def ratio(self) -> float:
        """Doctriage's pages a minute over the bare engine's, whole runs with start-up."""
        return _wall_s(self.bare) / _wall_s(self.doctriage)


def measure(
    images: Sequence[Path], *, rounds: int, job_counts: Sequence[int] = (1, 2)
) -> tuple[Contest, ...]:
    """Every round runs all contestants, every other round backwards, so that drift of the machine cancels."""
    runs: dict[tuple[str, int], list[Run]] = {}
    contestants = [(name, jobs) for jobs in job_counts for name in ("doctriage", "bare")]
    for round_number in range(rounds):
        for name, jobs in contestants if round_number % 2 == 0 else reversed(contestants):
            run = run_doctriage(images, jobs) if name == "doctriage" else run_bare(images, jobs)
            runs.setdefault((name, jobs), []).append(run)
    return tuple(
        Contest(jobs=jobs, doctriage=tuple(runs["doctriage", jobs]), bare=tuple(runs["bare", jobs]))
        for jobs in job_counts
    )


def run_doctriage(images: Sequence[Path], jobs: int) -> Run:
    """The whole of ``doctriage ingest`` over the images, with an empty state folder."""
    finished_at: list[float] = []

    def note(event: Event) -> None:
        if isinstance(event, PageFinished):
            finished_at.append(time.perf_counter())

    with TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder, "home"), executor=ExecutorSettings(jobs=jobs))
        request = IngestRequest(paths=tuple(images), out_dir=Path(folder, "out"))
        return _timed(lambda: ingest(request, settings=settings, on_event=note), finished_at, len(images))


def run_bare(images: Sequence[Path], jobs: int) -> Run:
    """One ``image_to_data`` call a page image, one OCR thread a process, and nothing else."""
    finished_at: list[float] = []

    def loop() -> None:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            for _ in pool.map(read_bare, images):
                finished_at.append(time.perf_counter())

    return _timed(loop, finished_at, len(images))


def read_bare(image: Path) -> int:
    """Words found on the page image."""
    os.environ["OMP_THREAD_LIMIT"] = "1"
    with Image.open(image) as page:
        words = pytesseract.image_to_data(
            page, lang=LANGUAGE, config=f"--dpi {PAGE_DPI}", output_type=pytesseract.Output.DICT
        )
    return sum(bool(text.strip()) for text in words["text"])


def print_tables(contests: Sequence[Contest], console: Console) -> None:
    speed = Table(title="Pages a minute (whole run; after the first page)")
    for heading in (
        "processes",
        "doctriage",
        "bare engine",
        "ratio, whole run",
        "ratio, after the first page",
    ):
        speed.add_column(heading, justify="right")
    cost = Table(title="CPU seconds a page")
    for heading in ("processes", "doctriage", "bare engine", "ratio"):
        cost.add_column(heading, justify="right")
    for contest in contests:
        ours, bare = contest.doctriage, contest.bare
        speed.add_row(
            str(contest.jobs),
            f"{_pages_per_min(ours):.1f}; {_steady_pages_per_min(ours):.1f}",
            f"{_pages_per_min(bare):.1f}; {_steady_pages_per_min(bare):.1f}",
            f"{contest.ratio:.2f}",
            f"{_steady_pages_per_min(ours) / _steady_pages_per_min(bare):.2f}",
        )
        cost.add_row(
            str(contest.jobs),
            f"{_cpu_s_per_page(ours):.2f}",
            f"{_cpu_s_per_page(bare):.2f}",
            f"{_cpu_s_per_page(bare) / _cpu_s_per_page(ours):.2f}",
        )
    console.print(speed)
    console.print(cost)


def _timed(work: Callable[[], object], finished_at: list[float], page_count: int) -> Run:
    cpu_before_s, started_at = _cpu_s(), time.perf_counter()
    work()
    wall_s = time.perf_counter() - started_at
    if len(finished_at) != page_count:
        raise RuntimeError(f"{len(finished_at)} of {page_count} pages finished; the measurement is void")
    return Run(
        page_count=page_count,
        wall_s=wall_s,
        steady_s=finished_at[-1] - finished_at[0],
        cpu_s=_cpu_s() - cpu_before_s,
    )


def _cpu_s() -> float:
    """User and system seconds of this process and of its children that have ended."""
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _wall_s(runs: Sequence[Run]) -> float:
    return statistics.fmean(run.wall_s for run in runs)


def _pages_per_min(runs: Sequence[Run]) -> float:
    return 60 * runs[0].page_count / _wall_s(runs)


def _steady_pages_per_min(runs: Sequence[Run]) -> float:
    return 60 * (runs[0].page_count - 1) / statistics.fmean(run.steady_s for run in runs)


def _cpu_s_per_page(runs: Sequence[Run]) -> float:
    return statistics.fmean(run.cpu_s / run.page_count for run in runs)
