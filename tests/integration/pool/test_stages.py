"""The stages of the pool on real PostgreSQL, without a broker: what becomes of documents, and what follows."""

from __future__ import annotations

import io
import itertools
import json
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pikepdf import Encryption, Pdf
from pydantic import SecretStr
from sqlalchemy import select

from models.pool import Queue, SubmissionState
from models.tables import LedgerKind, LedgerRow
from tests.fakes.engines import FakeEngines, FakeOcr, Fault
from tests.fakes.pages import tiff_of_widths
from tests.integration.pool.bench import PoolBench, pool_bench
from workers.cluster import pace as pace_module
from workers.cluster.ocr_stage import read_pages
from workers.cluster.turn import Turn, take_turn
from workers.events import IngestRequest
from workers.local import ingest

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


def engines(tmp_path: Path, **options: Any) -> FakeEngines:
    return FakeEngines(ocr=FakeOcr(folder=tmp_path, **options))


def calls(tmp_path: Path) -> list[int]:
    """The widths of the pages that were read, in order."""
    return [int(line.split()[0]) for line in (tmp_path / "calls").read_text("ascii").splitlines()]


def booked(bench: PoolBench, submission_id: int) -> list[LedgerKind]:
    entries = select(LedgerRow.kind).where(LedgerRow.submission_id == submission_id)
    with bench.host.store.database.read() as session:
        return list(session.scalars(entries.order_by(LedgerRow.entry_id)))


def comparable(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in page.items() if name != "elapsed_s"} for page in pages]


def test_the_pool_writes_what_the_embedded_executor_writes(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    for name in ("two_columns.pdf", "blank_page.pdf"):
        shutil.copy(SAMPLES / name, folder)
    with pool_bench(tmp_path / "pool", postgres_url) as bench:
        submission_id = bench.submit(folder)
        bench.work()
        sources = bench.sources(submission_id)
        progress = bench.host.store.pool.progress(submission_id)
        assert (progress.state, progress.failed_sources) == (SubmissionState.FINISHED, 0)
        out = tmp_path / "out"
        request = IngestRequest(paths=(folder,), out_dir=out, cost_centre="harbour")
        ingest(
            request,
            settings=bench.settings.model_copy(update={"database_url": None}),
            on_event=lambda _: None,
        )
        for name, source in sources.items():
            assert bench.output(source, ".md") == (out / f"{name}.md").read_text("utf-8")
            local = json.loads((out / f"{name}.json").read_text("utf-8"))["pages"]
            assert comparable(bench.pages(source)) == comparable(local)


def test_equal_bytes_under_two_names_are_read_once_and_written_twice(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    tiff_of_widths(folder / "a.tif", [500, 501])
    shutil.copy(folder / "a.tif", folder / "b.tif")
    fakes = engines(tmp_path)
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=fakes) as bench:
        submission_id = bench.submit(folder, force=True)
        bench.work()
        first, second = bench.sources(submission_id).values()
        assert first.reading_id == second.reading_id
        assert comparable(bench.pages(first)) == comparable(bench.pages(second))
        assert '"b.tif"' in bench.output(second, ".json")
        assert booked(bench, submission_id) == [LedgerKind.CPU_PAGE] * 2
    assert calls(tmp_path) == [500, 501]


def test_what_another_submission_has_read_is_a_cache_hit_and_no_work(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    tiff_of_widths(folder / "a.tif", [500, 501])
    fakes = engines(tmp_path)
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=fakes) as bench:
        bench.submit(folder)
        bench.work()
        again = bench.submit(folder)
        bench.work((Queue.INTAKE,))
        assert bench.tickets.sent == Counter({Queue.ASSEMBLE: 1})
        bench.work()
        assert [page["text"] for page in bench.pages(bench.sources(again)["a.tif"])] == [
            "page of 500 pixels",
            "page of 501 pixels",
        ]
        assert booked(bench, again) == [LedgerKind.CACHE_HIT]
    assert calls(tmp_path) == [500, 501]


def test_a_source_that_is_no_document_is_refused_and_the_others_are_read(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    tiff_of_widths(folder / "a.tif", [500])
    (folder / "b.pdf").write_bytes(b"%PDF-1.7 and no more")
    (folder / "c.pdf").touch()
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=engines(tmp_path)) as bench:
        submission_id = bench.submit(folder)
        bench.work()
        sources = bench.sources(submission_id)
        assert sources["a.tif"].is_written
        assert (sources["b.pdf"].error_code, sources["c.pdf"].error_code) == (
            "document_corrupt",
            "empty_file",
        )
        assert (sources["b.pdf"].error_message or "").startswith("b.pdf: ")
        assert bench.host.store.pool.progress(submission_id).state is SubmissionState.FINISHED


def test_a_page_that_fails_is_shown_as_failed_in_outputs_that_hold_the_others(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    tiff_of_widths(folder / "a.tif", [500, 501, 502])
    tiff_of_widths(folder / "b.tif", [501])
    fakes = engines(tmp_path, faults={501: Fault.ENGINE_ERROR})
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=fakes) as bench:
        submission_id = bench.submit(folder)
        bench.work()
        sources = bench.sources(submission_id)
        assert [page["error"] is None for page in bench.pages(sources["a.tif"])] == [True, False, True]
        assert (sources["b.tif"].error_code, sources["b.tif"].is_written) == ("document_failed", False)
        assert bench.host.store.pool.progress(submission_id).state is SubmissionState.FINISHED


def test_a_sealed_password_opens_a_document_and_is_gone_with_the_submission(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    with Pdf.open(SAMPLES / "two_columns.pdf") as pdf:
        pdf.save(folder / "a.pdf", encryption=Encryption(user="harbour gate", owner="owner"))
    key = SecretStr(Fernet.generate_key().decode())
    with pool_bench(tmp_path / "pool", postgres_url, pool={"secret_key": key}) as bench:
        submission_id = bench.submit(folder, passwords=("wrong", "harbour gate"))
        assert bench.host.store.pool.terms(submission_id).sealed_passwords is not None
        bench.work()
        assert bench.sources(submission_id)["a.pdf"].is_written
        assert bench.host.store.pool.terms(submission_id).sealed_passwords is None


def test_a_worker_that_cannot_open_passwords_says_that_it_is_a_worker(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    shutil.copy(SAMPLES / "two_columns.pdf", folder / "a.pdf")
    key = SecretStr(Fernet.generate_key().decode())
    with pool_bench(tmp_path / "pool", postgres_url) as bench:
        sealing = bench.settings.pool.model_copy(update={"secret_key": key})
        bench.settings = bench.settings.model_copy(update={"pool": sealing})
        submission_id = bench.submit(folder, passwords=("harbour gate",))
        bench.work()
        refused = bench.sources(submission_id)["a.pdf"]
    assert refused.error_code == "settings_invalid"
    assert (refused.error_message or "").startswith(
        "a.pdf: refused by a worker of the pool: the submission has"
    )


def test_a_reader_without_the_key_leaves_the_pages_to_others(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    with Pdf.open(SAMPLES / "two_columns.pdf") as pdf:
        pdf.save(folder / "a.pdf", encryption=Encryption(user="harbour gate", owner="owner"))
    key = SecretStr(Fernet.generate_key().decode())
    with pool_bench(tmp_path / "pool", postgres_url, pool={"secret_key": key}) as bench:
        submission_id = bench.submit(folder, passwords=("harbour gate",))
        bench.work((Queue.INTAKE,))
        with_key = bench.host.deployment
        keyless = with_key.settings.pool.model_copy(update={"secret_key": None})
        without = with_key.settings.model_copy(update={"pool": keyless})
        bench.host.deployment = replace(with_key, settings=without)
        assert take_turn(partial(read_pages, bench.host), Queue.OCR, bench.tickets) is Turn.PUT_OFF
        bench.host.deployment = with_key
        bench.work()
        assert bench.sources(submission_id)["a.pdf"].is_written


def test_the_pool_writes_formats_that_show_the_pages(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    """Also of a document that a sealed password opens."""
    tiff_of_widths(folder / "open.tif", [400])
    with Pdf.open(SAMPLES / "two_columns.pdf") as pdf:
        pdf.save(folder / "closed.pdf", encryption=Encryption(user="tide", owner="owner"))
    key = SecretStr(Fernet.generate_key().decode())
    with pool_bench(tmp_path / "pool", postgres_url, pool={"secret_key": key}) as bench:
        submission_id = bench.submit(folder, passwords=("tide",), formats=("pdf", "alto", "xlsx"))
        bench.work()
        for source in bench.sources(submission_id).values():
            assert source.error_code is None, source.error_message
            results = bench.host.blobs.results(source.source_id)
            assert results == (".alto.xml", ".searchable.pdf", ".xlsx")
            assert "<Page " in bench.output(source, ".alto.xml")
            with bench.host.blobs.open_result(source.source_id, ".searchable.pdf") as stream:
                stored = io.BytesIO(stream.read())
            with Pdf.open(stored) as pdf:
                assert (len(pdf.pages), pdf.is_encrypted) == (source.page_count, False)


def test_pages_that_were_not_begun_go_back_when_the_worker_is_to_end(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    tiff_of_widths(folder / "a.tif", [500, 501, 502, 503])
    fakes = engines(tmp_path)
    home, pool = tmp_path / "pool", {"pages_per_claim": 4}
    with pool_bench(home, postgres_url, build_engines=fakes, is_stopping=lambda: True, pool=pool) as ending:
        submission_id = ending.submit(folder)
        ending.work((Queue.INTAKE,))
        ending.hurry()
        follow = read_pages(ending.host)
        assert (calls(tmp_path), follow[Queue.OCR]) == ([500], 0)
        assert ending.host.store.pool.backlog().queues[Queue.OCR].held == 0
    with pool_bench(home, postgres_url, build_engines=fakes, pool=pool) as bench:
        bench.tickets.send(Queue.OCR, 3)
        bench.work()
        assert bench.sources(submission_id)["a.tif"].is_written
    assert calls(tmp_path) == [500, 501, 502, 503]


def test_whoever_takes_several_pages_takes_their_tickets_too(
    tmp_path: Path, folder: Path, postgres_url: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace_module, "monotonic", lambda: 0.0)
    tiff_of_widths(folder / "a.tif", [500, 501, 502, 503])
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=engines(tmp_path)) as bench:
        bench.submit(folder)
        bench.work((Queue.INTAKE,))
        assert bench.tickets.sent[Queue.OCR] == 4
        bench.hurry()
        assert read_pages(bench.host) == Counter({Queue.ASSEMBLE: 1, Queue.VLM: 0, Queue.OCR: -3})
    assert calls(tmp_path) == [500, 501, 502, 503]


def test_of_pages_that_turn_out_slow_no_more_are_begun_in_a_turn(
    tmp_path: Path, folder: Path, postgres_url: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(pace_module, "monotonic", lambda: float(next(seconds)))
    tiff_of_widths(folder / "a.tif", [500, 501, 502, 503])
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=engines(tmp_path)) as bench:
        submission_id = bench.submit(folder)
        bench.work((Queue.INTAKE,))
        bench.hurry()
        assert bench.host.pace.pages == 8
        bench.tickets.take(Queue.OCR, 1)
        follow = read_pages(bench.host)
        assert (follow[Queue.OCR], calls(tmp_path), bench.host.pace.pages) == (0, [500], 1)
        assert bench.host.store.pool.backlog().queues[Queue.OCR].held == 0
        bench.work()
        assert bench.sources(submission_id)["a.tif"].is_written
    assert calls(tmp_path) == [500, 501, 502, 503]


def test_a_worker_of_another_version_reads_what_is_unread_under_its_own_name(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    tiff_of_widths(folder / "a.tif", [500, 501, 502])
    pool = {"pages_per_claim": 1}
    old, new = engines(tmp_path), engines(tmp_path, version="2")
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=old, pool=pool) as bench:
        submission_id = bench.submit(folder)
        bench.work((Queue.INTAKE,))
        read_pages(bench.host)
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=new, pool=pool) as bench:
        bench.tickets.send(Queue.OCR, 3)
        bench.work()
        assert len(bench.pages(bench.sources(submission_id)["a.tif"])) == 3
        assert bench.host.store.pool.progress(submission_id).state is SubmissionState.FINISHED
    assert calls(tmp_path) == [500, 500, 501, 502]
