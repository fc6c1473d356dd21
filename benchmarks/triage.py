"""What triage costs: CPU seconds a page by stage, and in passes of Tesseract over the same page.

``python -m benchmarks.triage [PATH…]`` reads the files, or those of samples/, in one process.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytesseract
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.pages import SAMPLES
from models.document import Document
from models.errors import DocumentRejected, PageFailed
from pipeline.intake import inspect_source
from pipeline.page_pipeline import Engines, read_pages
from pipeline.planning.configured import load_plan
from pipeline.policy import Policy, load_policy
from pipeline.ports import PageRaster
from pipeline.rasterise import rasterise_pages
from pipeline.settings import Settings
from workers.bootstrap import build_engines

TESSERACT: Final = "Tesseract: first reading"
LANGUAGES: Final = "Tesseract: other languages and scripts"
SECOND: Final = "PaddleOCR: second opinion"
ORIENTATION: Final = "orientation network"
SKEW: Final = "skew"
LAYOUT: Final = "layout network"
REST: Final = "signals, policy, reading order, drawing the page"
ENGINES: Final = (TESSERACT, LANGUAGES, SECOND)
STAGES: Final = (*ENGINES, ORIENTATION, SKEW, LAYOUT, REST)

MOST_WITHOUT_ENGINES: Final = 0.6
MOST_IN_ALL: Final = 2.5
"""The bounds, in passes of Tesseract."""


@dataclass(slots=True)
class Meter:
    """CPU seconds by stage, of this process and of the programs that it waited for."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    pages: int = 0
    bare_s: float = 0.0

    @contextmanager
    def measured(self, stage: str) -> Iterator[None]:
        before = cpu_s()
        try:
            yield
        finally:
            self.seconds[stage] += cpu_s() - before


class Metered:
    """An engine whose methods' time is booked to a stage."""

    def __init__(
        self, engine: object, meter: Meter, stage: Callable[[tuple[Any, ...], dict[str, Any]], str]
    ) -> None:
        self._engine, self._meter, self._stage = engine, meter, stage

    def __getattr__(self, name: str) -> Any:
        wanted = getattr(self._engine, name)
        if not callable(wanted):
            return wanted

        def measured(*args: Any, **keywords: Any) -> Any:
            with self._meter.measured(self._stage(args, keywords)):
                return wanted(*args, **keywords)

        return measured


def cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def metered(engines: Engines, meter: Meter, first_languages: tuple[str, ...]) -> Engines:
    def reading(args: tuple[Any, ...], keywords: dict[str, Any]) -> str:
        return (
            TESSERACT if tuple(keywords.get("languages", first_languages)) == first_languages else LANGUAGES
        )

    def always(stage: str) -> Callable[[tuple[Any, ...], dict[str, Any]], str]:
        return lambda args, keywords: stage

    readers = engines.readers
    choice = readers.language_choice
    return replace(
        engines,
        readers=replace(
            readers,
            ocr=Metered(readers.ocr, meter, reading),
            orientation=Metered(readers.orientation, meter, always(ORIENTATION)),
            skew=Metered(readers.skew, meter, always(SKEW)),
            second=readers.second and Metered(readers.second, meter, always(SECOND)),
            language_choice=choice
            and replace(choice, reader=Metered(choice.reader, meter, always(LANGUAGES))),
        ),
        layout=Metered(engines.layout, meter, always(LAYOUT)),
    )


def measure(paths: Iterable[Path], settings: Settings, console: Console) -> Meter:
    """The first document is read once before, so that loading networks and programs is not counted."""
    files = sorted(
        file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()
    )
    engines, policy = build_engines(settings), load_policy()
    meter, warming = Meter(), Meter()
    documents = list(_documents(files, engines, settings))
    for file, document in documents[:1]:
        _read(
            file,
            document,
            metered(engines, warming, settings.read.first_languages),
            settings,
            policy,
            warming,
        )
    timed = metered(engines, meter, settings.read.first_languages)
    for file, document in track(documents, description="reading", console=console):
        _read(file, document, timed, settings, policy, meter)
        meter.bare_s += _bare_s(file, document, engines, settings)
    return meter


def _documents(
    files: Iterable[Path], engines: Engines, settings: Settings
) -> Iterator[tuple[Path, Document]]:
    for file in files:
        try:
            yield file, inspect_source(file, pdf=engines.pdf, limits=settings.intake, password=None)
        except DocumentRejected:
            continue


def _read(
    file: Path, document: Document, engines: Engines, settings: Settings, policy: Policy, meter: Meter
) -> None:
    plan = load_plan(settings.vlm)
    known_s, before_s = sum(meter.seconds.values()), cpu_s()
    numbers = range(1, document.page_count + 1)
    meter.pages += sum(
        not isinstance(result, PageFailed)
        for _, result in read_pages(file, document, numbers, engines, settings, policy, plan, None)
    )
    spent_s = cpu_s() - before_s
    meter.seconds[REST] += spent_s - (sum(meter.seconds.values()) - known_s)


def _bare_s(file: Path, document: Document, engines: Engines, settings: Settings) -> float:
    """One ``image_to_data`` call a page and nothing else."""
    total_s = 0.0
    numbers = range(1, document.page_count + 1)
    for _, raster in rasterise_pages(
        file, document.media_type, numbers, pdf=engines.pdf, settings=settings.rasterise, password=None
    ):
        if isinstance(raster, PageRaster):
            before = cpu_s()
            pytesseract.image_to_data(raster.image, lang="eng", config=f"--dpi {round(raster.dpi)}")
            total_s += cpu_s() - before
    return total_s


def print_table(meter: Meter, console: Console) -> None:
    table = Table(title=f"CPU seconds a page, mean of {meter.pages} pages")
    table.add_column("stage")
    table.add_column("seconds", justify="right")
    table.add_column("passes of Tesseract", justify="right")

    def row(name: str, seconds: float, *, style: str | None = None) -> None:
        table.add_row(name, f"{seconds / meter.pages:.3f}", f"{seconds / meter.bare_s:.2f}", style=style)

    for stage in STAGES:
        row(stage, meter.seconds[stage])
    table.add_section()
    without = sum(seconds for stage, seconds in meter.seconds.items() if stage not in ENGINES)
    in_all = sum(meter.seconds.values())
    row("Tesseract alone, the same pages", meter.bare_s)
    row(f"all but the OCR engines (at most {MOST_WITHOUT_ENGINES} passes)", without, style="bold")
    row(f"everything (at most {MOST_IN_ALL} passes)", in_all, style="bold")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triage", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[SAMPLES])
    options = parser.parse_args()
    os.environ["OMP_THREAD_LIMIT"] = "1"
    console = Console(width=None if Console().is_terminal else 110)
    with TemporaryDirectory() as folder:
        print_table(measure(options.paths, Settings(home=Path(folder)), console), console)


if __name__ == "__main__":
    main()
