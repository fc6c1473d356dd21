"""A submission's trace, from whoever submits it to the calls of the VLM, with real stages, PostgreSQL and Redis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from pydantic import SecretStr

from models.pool import Queue
from models.transcription import TokenUsage
from tests.fakes.otlp_receiver import OtlpReceiver, ReceivedSpan, otlp_receiver
from tests.fakes.pages import page_image, write_tiff
from tests.fakes.wordy_ocr import WordyEngines, WordyOcr, words_on
from tests.integration.pool.bench import PoolBench, pool_bench
from tests.integration.vlm_runs import FIRST_WIDTH_PX, answer_on, fake_vlm
from tests.server_parts import Broker
from workers.cluster.ingesting import PoolRequest, submit
from workers.cluster.tracing import end_tracing
from workers.cluster.vlm_host import VlmHost
from workers.cluster.wishes import Wishes
from workers.events import IngestRequest

PAGES = 3


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        yield receiver
        end_tracing()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    widths = range(FIRST_WIDTH_PX, FIRST_WIDTH_PX + PAGES)
    write_tiff(made / "a.tif", [page_image(f"page of width {width}", width_px=width) for width in widths])
    return made


def run_through(bench: PoolBench, folder: Path, out_dir: Path) -> int:
    """The submission, with every stage done that it takes."""
    request = IngestRequest(paths=(folder,), out_dir=out_dir, cost_centre="team-7")
    submission_id = submit(
        PoolRequest(request=request, wishes=Wishes()),
        settings=bench.settings,
        on_event=lambda _: None,
        on_busy=lambda _: None,
    )
    bench.tickets.send(Queue.INTAKE)
    bench.work()
    host = VlmHost(bench.host)
    try:
        for _ in range(PAGES):
            bench.tickets.sent.update(host.transcribe())
        bench.work()
    finally:
        host.close()
    return submission_id


def test_a_trace_leads_from_the_submission_to_every_call(
    tmp_path: Path, folder: Path, postgres_url: SecretStr, redis_broker: Broker, collector: OtlpReceiver
) -> None:
    with (
        fake_vlm(answer=answer_on()) as fake,
        pool_bench(
            tmp_path / "pool",
            postgres_url,
            build_engines=WordyEngines(ocr=WordyOcr(folder=tmp_path)),
            route="vlm",
            vlm={"url": fake.base_url},
            pool={"broker_url": redis_broker.url, "pages_per_claim": 1},
        ) as bench,
    ):
        submission_id = run_through(bench, folder, tmp_path / "out")
        [source] = bench.sources(submission_id).values()
        end_tracing()

    [submitted] = collector.named("submit")
    assert submitted.parent_id is None
    assert {span.trace_id for span in collector.spans} == {submitted.trace_id}
    stages = [span for span in collector.spans if span.kind == "consumer"]
    assert {span.parent_id for span in stages} == {submitted.span_id}
    assert sorted(span.name for span in stages) == ["assemble", "intake", *["ocr"] * PAGES, *["vlm"] * PAGES]
    for span in stages:
        assert span.attributes["doctriage.submission_id"] == submission_id
        assert span.attributes["doctriage.document_id"] == source.document_id
        assert span.attributes["doctriage.reading_id"] == source.reading_id
        assert span.attributes["doctriage.cost_centre"] == "team-7"
    read = collector.named("ocr")
    assert [span.attributes["doctriage.page_numbers"] for span in read] == [[1], [2], [3]]
    assert [span.attributes["doctriage.outcomes"] for span in read] == [["escalated"]] * PAGES
    _assert_calls(collector, [request.billed for request in fake.seen if request.billed is not None])
    told = str(collector.spans)
    assert "a.tif" not in told
    assert not [word for word in words_on(FIRST_WIDTH_PX) if len(word) > 3 and word in told]


def _assert_calls(collector: OtlpReceiver, billed: list[TokenUsage]) -> None:
    calls = [span for span in collector.spans if span.kind == "client"]
    assert len(calls) == PAGES
    assert {span.parent_id for span in calls} == {span.span_id for span in collector.named("vlm")}
    for call in calls:
        assert call.name == f"chat {call.attributes['gen_ai.request.model']}"
        assert call.attributes["gen_ai.operation.name"] == "chat"
        assert call.attributes["gen_ai.response.finish_reasons"] == ["stop"]
        assert call.attributes["server.address"] == "127.0.0.1"
    assert sorted(_usage(call) for call in calls) == sorted(
        (one.prompt_tokens, one.completion_tokens) for one in billed
    )


def _usage(call: ReceivedSpan) -> tuple[int, int]:
    return call.attributes["gen_ai.usage.input_tokens"], call.attributes["gen_ai.usage.output_tokens"]


def test_each_line_bears_the_ids_of_the_work_that_it_is_about(
    tmp_path: Path,
    folder: Path,
    postgres_url: SecretStr,
    redis_broker: Broker,
    collector: OtlpReceiver,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with (
        fake_vlm(answer=answer_on()) as fake,
        pool_bench(
            tmp_path / "pool",
            postgres_url,
            build_engines=WordyEngines(ocr=WordyOcr(folder=tmp_path)),
            route="vlm",
            log_level="info",
            vlm={"url": fake.base_url},
            pool={"broker_url": redis_broker.url},
        ) as bench,
    ):
        submission_id = run_through(bench, folder, tmp_path / "out")
        [source] = bench.sources(submission_id).values()
        owner = bench.host.owner
        end_tracing()
    structlog.reset_defaults()
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    calls = [line for line in lines if line["event"] == "vlm_call"]
    assert sorted(line["page_numbers"] for line in calls) == [[1], [2], [3]]
    spans = {span.span_id: span for span in collector.named("vlm")}
    for line in calls:
        assert (line["queue"], line["submission_id"], line["owner"]) == ("vlm", submission_id, owner)
        assert (line["document_id"], line["reading_id"]) == (source.document_id, source.reading_id)
        assert line["page_number"] == line["page_numbers"][0]
        assert line["trace_id"] == spans[line["span_id"]].trace_id
    assert structlog.contextvars.get_contextvars() == {}
