"""Traces on their way to a collector: what is in a span, when it is sent, and that nobody pays who asked for none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from billiard import Process

from models.errors import DocumentCorrupt, VlmError, VlmOverloaded
from models.transcription import FittedImage, TokenUsage, VlmReply, VlmRequest
from tests.fakes.otlp_receiver import OtlpReceiver, otlp_receiver
from workers.cluster import observed_engine
from workers.cluster.metrics import WorkerMetrics
from workers.cluster.observed_engine import ObservedVlmEngine
from workers.cluster.tracing import end_tracing, is_tracing, stage_span, submission_span

REQUEST = VlmRequest(
    request_id="ab/1/2/1",
    images=(FittedImage(encoded=b"png", width_px=56, height_px=28, visual_tokens=2, tier="small"),),
    temperature=0.1,
    max_tokens=300,
)
REPLY = VlmReply(
    text="the text of a page",
    finish_reason="stop",
    usage=TokenUsage(prompt_tokens=70, completion_tokens=9, cached_tokens=16, reasoning_tokens=4),
    model_id="qwen-served",
    elapsed_s=0.5,
)


class Engine:
    model_id = "qwen"

    def __init__(self, end: VlmReply | Exception) -> None:
        self._end = end

    async def transcribe(self, request: VlmRequest) -> VlmReply:
        if isinstance(self._end, Exception):
            raise self._end
        return self._end

    async def close(self) -> None: ...


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        yield receiver
        end_tracing()


def call(end: VlmReply | Exception, url: str = "http://me:word@gpu.example:8000/v1") -> WorkerMetrics:
    metrics = WorkerMetrics()
    asyncio.run(ObservedVlmEngine(Engine(end), url, metrics).transcribe(REQUEST))
    return metrics


def test_a_stage_is_a_span_below_the_submission_that_it_works_for(collector: OtlpReceiver) -> None:
    with submission_span({"doctriage.cost_centre": "harbour"}) as traceparent:
        pass
    with stage_span("ocr", traceparent, {"doctriage.page_numbers": (1, 2)}) as span:
        span.set({"doctriage.outcomes": ("ocr", "escalated")})
    end_tracing()
    [submit], [stage] = collector.named("submit"), collector.named("ocr")
    assert (submit.parent_id, stage.parent_id) == (None, submit.span_id)
    assert submit.trace_id == stage.trace_id
    assert traceparent is not None
    assert traceparent.startswith(f"00-{submit.trace_id}-{submit.span_id}-")
    assert len(traceparent) == 55
    assert (submit.kind, stage.kind) == ("producer", "consumer")
    assert stage.attributes == {"doctriage.page_numbers": [1, 2], "doctriage.outcomes": ["ocr", "escalated"]}
    assert stage.resource["service.name"] == "doctriage"
    assert collector.paths == ["/v1/traces"]


def test_a_stage_without_a_traceparent_begins_a_trace(collector: OtlpReceiver) -> None:
    with submission_span({}), stage_span("ocr", None, {}):
        pass
    end_tracing()
    [submit], [stage] = collector.named("submit"), collector.named("ocr")
    assert stage.parent_id is None
    assert stage.trace_id != submit.trace_id


def test_the_service_may_be_named_otherwise(collector: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "harbour-ocr")
    with stage_span("ocr", None, {}):
        pass
    end_tracing()
    assert collector.named("ocr")[0].resource["service.name"] == "harbour-ocr"


def test_a_service_without_a_port_has_that_of_its_scheme(collector: OtlpReceiver) -> None:
    call(REPLY, "https://gpu.example/v1")
    end_tracing()
    [chat] = collector.named("chat qwen")
    assert (chat.attributes["server.address"], chat.attributes["server.port"]) == ("gpu.example", 443)


def test_the_conventions_have_every_name_that_a_call_is_told_by() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    told = observed_engine.request_attributes(REQUEST, "qwen") | observed_engine.reply_attributes(REPLY)
    names = {name for name in told if not name.startswith("doctriage.")}
    assert len(names) == 12
    assert names <= {name for name in vars(gen_ai_attributes).values() if isinstance(name, str)}


def test_a_call_is_told_as_the_conventions_for_generative_ai_have_it(collector: OtlpReceiver) -> None:
    with stage_span("vlm", None, {}):
        call(REPLY)
    end_tracing()
    [stage], [chat] = collector.named("vlm"), collector.named("chat qwen")
    assert (chat.kind, chat.parent_id, chat.is_error) == ("client", stage.span_id, False)
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "qwen",
        "gen_ai.request.max_tokens": 300,
        "gen_ai.request.temperature": 0.1,
        "gen_ai.output.type": "text",
        "gen_ai.response.model": "qwen-served",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.cache_read.input_tokens": 16,
        "gen_ai.usage.reasoning.output_tokens": 4,
        "server.address": "gpu.example",
        "server.port": 8000,
        "doctriage.request_id": "ab/1/2/1",
        "doctriage.predicted_visual_tokens": 2,
    }


def test_a_call_that_fails_is_told_by_the_code_of_its_error(collector: OtlpReceiver) -> None:
    with pytest.raises(VlmError):
        call(VlmOverloaded("the text of a page"))
    end_tracing()
    [chat] = collector.named("chat qwen")
    assert (chat.is_error, chat.attributes["error.type"]) == (True, VlmOverloaded.code)
    assert (chat.status_message, chat.events) == ("", 0)
    assert "the text of a page" not in str(chat)


def test_a_stage_that_fails_quotes_no_document(collector: OtlpReceiver) -> None:
    for error in (DocumentCorrupt("invoice 4711"), ZeroDivisionError("invoice 4711")):
        with pytest.raises(type(error)), stage_span("intake", None, {}):
            raise error
    end_tracing()
    failed = collector.named("intake")
    assert [span.attributes["error.type"] for span in failed] == ["document_corrupt", "ZeroDivisionError"]
    assert "4711" not in str(failed)


def test_what_a_forked_child_did_is_sent_when_it_ends(collector: OtlpReceiver) -> None:
    with stage_span("ocr", None, {}):
        pass

    def work() -> None:
        with stage_span("vlm", None, {}):
            pass
        end_tracing()

    child = Process(target=work)
    child.start()
    child.join()
    assert len(collector.named("vlm")) == 1
    assert collector.named("ocr") == []
    end_tracing()
    assert len(collector.named("ocr")) == 1


def test_a_program_that_ends_sends_what_is_left(collector: OtlpReceiver) -> None:
    program = "from workers.cluster.tracing import *\nwith submission_span({}): pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert len(collector.named("submit")) == 1


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
    ],
)
def test_traces_are_on_where_the_environment_asks_for_them(
    variables: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_tracing() is wanted


def test_without_a_collector_opentelemetry_is_not_even_imported() -> None:
    program = """
import asyncio, sys
from tests.integration.test_tracing import REPLY, call
import workers.cluster.tasks, workers.cluster.ingesting
from workers.cluster.tracing import *
with submission_span({}) as traceparent, stage_span("ocr", traceparent, {}) as span:
    span.set({"a": 1})
    call(REPLY)
end_tracing()
assert traceparent is None
print([name for name in sys.modules if name.startswith("opentelemetry.") and ".proto" not in name])
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == "[]"
