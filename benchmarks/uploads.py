"""What does a crowd of uploads do to the API? ``python -m benchmarks.uploads`` sends 200 documents of 5 MB at the same
time to ``doctriage serve`` with its own readers, and asks meanwhile, from a process of its own, how one document is
doing. The readers are busy with OCR of the samples that are pictures. Some minutes; client, server and readers share
this machine.

A document is a page with a text layer and a stream of random bytes that makes it as large as it is, no two alike. A
client that is told to come back later does, after as many seconds as it is told.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx2
import psutil
import pypdf
from reportlab.pdfgen.canvas import Canvas
from rich.console import Console
from rich.table import Column, Table

from models.document_state import DocumentState
from tests.api_server import ApiServer, api_server

TEMPORARY: Final = (429, 503)
SAMPLES: Final = Path(__file__).parents[1] / "samples"
PROBE_EVERY_S: Final = 0.02
MEMORY_EVERY_S: Final = 0.1
MOST_WAIT_S: Final = 1_800
MOST_P99_S: Final = 0.1
MOST_GROWTH_MIB: Final = 50
MIB: Final = 2**20


@dataclass(slots=True)
class Crowd:
    """``answers`` counts what came back to uploads, by status; ``bare`` are refusals that did not say when to come
    back. ``links`` are the accepted documents, ``states`` what became of them, ``rss_bytes`` the server's own
    process meanwhile, ``probes_s`` how long a document's state took to be answered while the uploads arrived."""

    answers: Counter[int] = field(default_factory=Counter)
    bare: int = 0
    links: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    rss_bytes: list[int] = field(default_factory=list)
    probes_s: Sequence[float] = ()
    uploads_s: float = 0.0
    whole_s: float = 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    console = Console(width=None if Console().is_terminal else 110)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    settings = {"DOCTRIAGE_EXECUTOR__JOBS": str(os.cpu_count())}
    with TemporaryDirectory() as folder, api_server(Path(folder, "server"), **settings) as server:
        papers = write_documents(Path(folder, "papers"), options.uploads + 1, round(options.mb * 1e6))
        crowd = asyncio.run(_measure(server, papers))
    print_tables(crowd, console)
    console.print(f"load {os.getloadavg()[0]:.1f} at the end")


def write_documents(folder: Path, count: int, byte_count: int) -> tuple[Path, ...]:
    folder.mkdir()
    paths = tuple(folder / f"letter_{number:03}.pdf" for number in range(count))
    for number, path in enumerate(paths):
        canvas = Canvas(str(path), pagesize=(420, 595))
        canvas.drawString(50, 520, f"Letter {number} of the crowd")
        canvas.drawString(50, 490, "Entries are kept in the order in which they were received.")
        canvas.save()
        writer = pypdf.PdfWriter(clone_from=path)
        writer.add_attachment("weight.bin", os.urandom(byte_count - path.stat().st_size))
        writer.write(path)
    return paths


async def _measure(server: ApiServer, papers: Sequence[Path]) -> Crowd:
    crowd = Crowd()
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=server.url, timeout=600, limits=limits) as client:
        first = await _sent(client, papers[0], Crowd())
        await _over(client, [first], Counter())
        pictures = [await _sent(client, path, Crowd()) for path in sorted(SAMPLES.glob("*.jpg"))]
        await _begun(client, pictures[0])
        with _probing(server.url + first) as end_probing:
            watching = asyncio.create_task(_watch(server.process.pid, crowd.rss_bytes))
            begun_s = time.monotonic()
            crowd.links = list(await asyncio.gather(*(_sent(client, path, crowd) for path in papers[1:])))
            crowd.uploads_s = time.monotonic() - begun_s
            crowd.probes_s = await asyncio.to_thread(end_probing)
        await _over(client, crowd.links, crowd.states)
        crowd.whole_s = time.monotonic() - begun_s
        watching.cancel()
    return crowd


async def _sent(client: httpx2.AsyncClient, path: Path, crowd: Crowd) -> str:
    """Sent again for as long as the server says when to come back; the document's address."""
    while True:
        with path.open("rb") as content:
            answer = await client.post("/v1/documents", files={"file": (path.name, content)})
        crowd.answers[answer.status_code] += 1
        if answer.status_code not in TEMPORARY:
            return str(answer.raise_for_status().headers["location"])
        later_s = answer.headers.get("retry-after")
        crowd.bare += later_s is None
        await asyncio.sleep(float(later_s or 1))


async def _begun(client: httpx2.AsyncClient, link: str) -> None:
    while (await client.get(link)).raise_for_status().json()["state"] == DocumentState.QUEUED:
        await asyncio.sleep(PROBE_EVERY_S)


async def _over(client: httpx2.AsyncClient, links: Sequence[str], states: Counter[str]) -> None:
    """Wait for each, and count what became of it; ``no result`` where there is none to be had."""
    deadline_s = time.monotonic() + MOST_WAIT_S
    for link in links:
        while (document := (await client.get(link)).raise_for_status().json())["finished_at"] is None:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{link}: {document['state']}")
            await asyncio.sleep(0.5)
        result = await client.get(f"{link}/result?format=markdown")
        states[document["state"] if result.is_success else "no result"] += 1


async def _watch(pid: int, rss_bytes: list[int]) -> None:
    server = psutil.Process(pid)
    while True:
        rss_bytes.append(server.memory_info().rss)
        await asyncio.sleep(MEMORY_EVERY_S)


@contextlib.contextmanager
def _probing(url: str) -> Iterator[Callable[[], Sequence[float]]]:
    """Another process asks for ``url`` again and again; what is yielded ends it and gives each answer's seconds."""
    ours, theirs = Pipe()
    prober = Process(target=_probe, args=(url, theirs), daemon=True)
    prober.start()

    def end() -> Sequence[float]:
        ours.send(None)
        seconds: Sequence[float] = ours.recv()
        return seconds

    try:
        yield end
    finally:
        prober.terminate()
        prober.join()


def _probe(url: str, pipe: Connection) -> None:
    seconds: list[float] = []
    with httpx2.Client(timeout=60) as client:
        while not pipe.poll(PROBE_EVERY_S):
            begun_s = time.monotonic()
            client.get(url).raise_for_status()
            seconds.append(time.monotonic() - begun_s)
    pipe.send(seconds)


def print_tables(crowd: Crowd, console: Console) -> None:
    grown_bytes = max(crowd.rss_bytes) - crowd.rss_bytes[0]
    shrunk_bytes = crowd.rss_bytes[0] - min(crowd.rss_bytes)
    percentiles = statistics.quantiles(crowd.probes_s, n=100)
    table = Table("measured", Column("value", justify="right"), Column("asked", justify="right"))
    rows = (
        ("uploads accepted", f"{crowd.answers[202]} in {crowd.uploads_s:,.1f} s", ""),
        *((f"answers {status}", f"{count:,}", "") for status, count in sorted(crowd.answers.items())),
        ("refusals without Retry-After", f"{crowd.bare}", "0"),
        *((f"documents {state}", f"{count}", "") for state, count in sorted(crowd.states.items())),
        ("until the last is read", f"{crowd.whole_s:,.1f} s", ""),
        ("the server's memory at the start", f"{crowd.rss_bytes[0] / MIB:,.0f} MiB", ""),
        ("  most above that", f"+{grown_bytes / MIB:,.1f} MiB", f"{MOST_GROWTH_MIB} MiB"),
        ("  most below that", f"-{shrunk_bytes / MIB:,.1f} MiB", f"{MOST_GROWTH_MIB} MiB"),
        (f"GET of a document, {len(crowd.probes_s):,} times: median", _ms(percentiles[49]), ""),
        ("  99 of 100 within", _ms(percentiles[98]), _ms(MOST_P99_S)),
        ("  the slowest", _ms(max(crowd.probes_s)), ""),
    )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _ms(seconds: float) -> str:
    return f"{1_000 * seconds:,.1f} ms"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uploads", description=__doc__)
    parser.add_argument("--uploads", type=int, default=200, help="at the same time (default: 200)")
    parser.add_argument("--mb", type=float, default=5, help="of each, in megabytes (default: 5)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
