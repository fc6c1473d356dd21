"""What does a page cost the pool's database: the ten-thousandth of a document as much as the first?
``python -m benchmarks.pool_database`` reads one document of 10,000 pages without reading it: claims, results of a real
page's size, bookings and completions are the real ones, in PostgreSQL, by two owners in turn; the OCR is left out. It
prints the milliseconds that the calls of the store took a page, in windows along the document. Some minutes.

Now and then a new document of fifty pages is read before the long one goes on: what else the machine does meets both
alike, so the ratio of the two says what a page's place in its document costs. At both ends that is done more often.

PostgreSQL is the tests' own server: with a cache of 32 MB, and nothing that waits for the disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from models.document import Document, MediaType
from models.page import Route
from pipeline.chargeback.entries import Account, Payer, read_page_entry
from pipeline.chargeback.price_book import load_price_book
from pipeline.outputs import page_row
from pipeline.store import PagesToRead, PoolLimits, Store, open_store
from tests.postgres import running_postgres

SAMPLE: Final = Path("samples/two_columns.pdf")
COST_CENTRE: Final = "benchmark"
LONG_PRIORITY: Final = 5
OWNERS: Final = ("first", "second")
LEASE_S: Final = 600.0
WARM_UP_PAGES: Final = 200
CONTROL_PAGES: Final = 50
NEW_EVERY_PAGES: Final = 250
LIMITS: Final = PoolLimits(max_waiting_pages=1_000_000, max_waiting_sources=1_000)
MOST_RATIO: Final = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Milliseconds of each page of the long document, and those of the pages of new documents that were read before
    one of its pages, by the number of pages before it."""

    pages: tuple[float, ...]
    new: Mapping[int, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Milliseconds that each page from ``first_page`` on took, and those of new documents meanwhile."""

    first_page: int
    pages: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def last_page(self) -> int:
        return self.first_page + len(self.pages) - 1

    @property
    def mean(self) -> float:
        return statistics.fmean(self.pages)

    @property
    def mean_of_new(self) -> float:
        return statistics.fmean(self.new)

    @property
    def ratio(self) -> float:
        """Of the medians: a pause of the machine is in neither."""
        return statistics.median(self.pages) / statistics.median(self.new)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    console = Console(width=None if Console().is_terminal else 110)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    page = _stored_page(SAMPLE)
    with _store() as store:
        bench = Bench(store, page, options.batch)
        bench.read_new(WARM_UP_PAGES)
        windows = windows_of(bench.read_long(options.pages))
        page_bytes = _page_bytes(store)
    console.print(_table(windows, page_bytes))
    first, last = windows[0], windows[-1]
    console.print(f"load {os.getloadavg()[0]:.1f} at the end")
    console.print(f"last window over first: {last.mean / first.mean:.2f}, by the clock alone")
    holds = "yes" if last.ratio <= MOST_RATIO else "no"
    console.print(f"over first pages meanwhile: {last.ratio:.2f} (at most {MOST_RATIO:g}: {holds})")
    if options.plot is not None:
        write_plot(windows, options.plot)
        console.print(f"Plot: {options.plot}")


def bounds_of(pages: int) -> list[int]:
    """Of windows: the first and the last hundred pages, and thousands between."""
    return sorted({0, 100, *range(1_000, pages - 100, 1_000), pages - 100, pages})


def windows_of(timed: Timed) -> tuple[Window, ...]:
    return tuple(
        Window(
            first_page=start + 1,
            pages=timed.pages[start:end],
            new=tuple(
                chain.from_iterable(timed.new[before] for before in timed.new if start <= before < end)
            ),
        )
        for start, end in pairwise(bounds_of(len(timed.pages)))
    )


def write_plot(windows: Sequence[Window], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
    pages = [page for window in windows for page in (window.first_page, window.last_page)]
    for label, name, colour in (
        ("page of the long document", "mean", "#1f5fa8"),
        ("page of a new document meanwhile", "mean_of_new", "#7a7a7a"),
    ):
        levels = [getattr(window, name) for window in windows for _ in range(2)]
        axes.plot(pages, levels, label=label, color=colour)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, windows[-1].last_page)
    axes.set_xlabel("page of the long document")
    axes.set_ylabel("milliseconds a page")
    axes.set_title("What a page costs the pool's database")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


class Bench:
    """Reads documents of pages that are all alike, as workers of the pool do. A new document comes before others."""

    def __init__(self, store: Store, page: Mapping[str, Any], batch: int) -> None:
        self._store = store
        self._page = page
        self._batch = batch
        self._documents = 0
        self._claims = 0

    def read_long(self, pages: int) -> Timed:
        account = self._take_in(pages, LONG_PRIORITY)
        ends = (*range(0, 100, 10), *range(pages - 100, pages, 10))
        new_before = {*bounds_of(pages)[:-1], *range(0, pages, NEW_EVERY_PAGES), *ends}
        timed: list[float] = []
        new: dict[int, tuple[float, ...]] = {}
        while len(timed) < pages:
            if len(timed) in new_before:
                new[len(timed)] = tuple(self.read_new(CONTROL_PAGES))
            timed += self._read_claim(account)
        self._write_out()
        return Timed(pages=tuple(timed), new=new)

    def read_new(self, pages: int) -> list[float]:
        """Milliseconds of each page, with its share of the claim."""
        account = self._take_in(pages, LONG_PRIORITY + 1)
        timed: list[float] = []
        while len(timed) < pages:
            timed += self._read_claim(account)
        self._write_out()
        return timed

    def _read_claim(self, account: Account) -> list[float]:
        self._claims += 1
        owner = OWNERS[self._claims % len(OWNERS)]
        started_s = time.perf_counter()
        work = self._store.pool.claim_pages(owner=owner, lease_s=LEASE_S, max_pages=self._batch, weights={})
        claim_s = time.perf_counter() - started_s
        if work is None or work.terms.submission_id != account.payer.submission_id:
            raise RuntimeError("pages of another document were claimed; the measurement is void")
        pages = len(work.page_numbers)
        return [
            1_000 * (claim_s / pages + self._settle(work, page_number, account, owner))
            for page_number in work.page_numbers
        ]

    def _settle(self, work: PagesToRead, page_number: int, account: Account, owner: str) -> float:
        """Seconds that the store took. What is stored of each page differs."""
        document_id = work.document.document_id
        page = {**self._page, "page_number": page_number, "text": f"{page_number} {self._page['text']}"}
        entry = read_page_entry(
            account,
            page,
            document_id=document_id,
            reading_id=work.reading_id,
            is_final=True,
            cpu_s=1.0,
            when=datetime.now(UTC),
        )
        summary = page_row("", document_id, page)
        started_s = time.perf_counter()
        self._store.pages.finish_page(
            work.reading_id,
            page_number,
            owner=owner,
            page=page,
            summary=summary,
            route=Route(page["route"]),
            elapsed_s=1.0,
            entry=entry,
        )
        if self._store.pages.complete_reading(work.reading_id):
            self._store.pool.sources_read(work.reading_id)
        return time.perf_counter() - started_s

    def _take_in(self, pages: int, priority: int) -> Account:
        store = self._store
        self._documents += 1
        document_id = f"{self._documents:064x}"
        submission_id = store.pool.open_submission(
            cost_centre=COST_CENTRE,
            submitter=None,
            priority=priority,
            wishes={},
            sealed_passwords=None,
            traceparent=None,
            limits=LIMITS,
        )
        store.pool.add_source(
            submission_id,
            name="long.pdf",
            output_stem="long.pdf",
            blob_id=document_id,
            byte_count=1,
            limits=LIMITS,
        )
        store.pool.seal(submission_id)
        source = store.pool.claim_source(owner=OWNERS[0], lease_s=LEASE_S, weights={})
        if source is None:
            raise RuntimeError("the source was not there to be taken in; the measurement is void")
        document = Document(document_id=document_id, media_type=MediaType.PDF, byte_count=1, page_count=pages)
        store.pages.save_document(document)
        opened = store.pages.open_reading(document, "f" * 64, force=False, submission_id=submission_id)
        store.pool.source_has_reading(
            source.source_id, owner=OWNERS[0], reading_id=opened.reading_id, document_id=document_id
        )
        payer = Payer(cost_centre=COST_CENTRE, submitter=None, submission_id=submission_id)
        return Account(payer=payer, price_book=load_price_book(), model_id="none")

    def _write_out(self) -> None:
        source = self._store.pool.claim_assembly(owner=OWNERS[0], lease_s=LEASE_S, weights={})
        if source is None:
            raise RuntimeError("a document was not complete after its last page; the measurement is void")
        self._store.pool.source_written(source.source_id, owner=OWNERS[0], failed_pages=0)


def _stored_page(document: Path) -> Mapping[str, Any]:
    """The JSON of its first page, as a run stores it."""
    from pipeline.settings import ExecutorSettings, Settings
    from workers.events import IngestRequest
    from workers.local import ingest

    with TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder, "home"), executor=ExecutorSettings(jobs=1))
        request = IngestRequest(paths=(document,), out_dir=Path(folder, "out"))
        ingest(request, settings=settings, on_event=lambda _: None)
        store = open_store(settings.home)
        try:
            [document_id] = store.submissions.documents_named(document.name)
            page = store.submissions.newest_page(document_id, 1)
        finally:
            store.close()
    if page is None:
        raise RuntimeError(f"{document} could not be read; the measurement is void")
    return page


@contextmanager
def _store() -> Iterator[Store]:
    with TemporaryDirectory() as folder, running_postgres() as server:
        server.execute("CREATE DATABASE pool")
        store = open_store(Path(folder), server.url("pool"))
        try:
            yield store
        finally:
            store.close()


def _page_bytes(store: Store) -> int:
    """Of a result, as it is written out."""
    import json

    page = next(iter(store.pages.stream_pages(1))).content
    return len(json.dumps(page, ensure_ascii=False).encode())


def _table(windows: Sequence[Window], page_bytes: int) -> Table:
    table = Table(title=f"Milliseconds of the store's calls a page; a result has {page_bytes / 1_000:.0f} kB")
    for heading in ("pages", "mean", "median", "95 of 100 within", "new documents", "ratio of medians"):
        table.add_column(heading, justify="left" if heading == "pages" else "right")
    for window in windows:
        table.add_row(
            f"{window.first_page:,} to {window.last_page:,}",
            f"{window.mean:.2f}",
            f"{statistics.median(window.pages):.2f}",
            f"{statistics.quantiles(window.pages, n=20)[-1]:.2f}",
            f"{window.mean_of_new:.2f}",
            f"{window.ratio:.2f}",
        )
    return table


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool_database", description=__doc__)
    parser.add_argument("--pages", type=int, default=10_000, help="of the document (default: 10,000)")
    parser.add_argument("--batch", type=int, default=2, help="pages a claim (default: 2)")
    parser.add_argument("--plot", type=Path, help="where a picture of it goes (PNG)")
    options = parser.parse_args(arguments)
    if options.pages < 300 or options.pages % 100:
        parser.error("--pages: a multiple of 100, at least 300")
    if options.batch < 1 or CONTROL_PAGES % options.batch:
        parser.error(f"--batch: a divisor of {CONTROL_PAGES}")
    return options


if __name__ == "__main__":
    main()
