"""vLLM's metrics, as it writes them and as others do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chargeback.reconciliation import TokenCounters
from tests.fakes.vlm_answers import metrics_text
from workers.vllm_metrics import VllmMetrics, metrics_from, metrics_url, token_counters_from

TWO_ENGINES = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="qwen"} 3.0
vllm:num_requests_running{engine="1",model_name="qwen"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="qwen"} 0.0
vllm:num_requests_waiting{engine="1",model_name="qwen"} 5.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="1",reason="capacity"} 99.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="qwen"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="qwen"} 0.97
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{le="+Inf"} 7.0
"""


def test_engines_are_taken_together() -> None:
    assert metrics_from(TWO_ENGINES) == VllmMetrics(running=7, waiting=5, kv_cache_usage=0.97)


def test_the_older_name_of_the_cache_is_known() -> None:
    text = TWO_ENGINES.replace("kv_cache_usage", "gpu_cache_usage")
    assert metrics_from(text) == VllmMetrics(running=7, waiting=5, kv_cache_usage=0.97)


def test_what_the_fake_says_is_read() -> None:
    text = metrics_text("qwen", running=2, waiting=1, kv_cache_usage=0.5)
    assert metrics_from(text) == VllmMetrics(running=2, waiting=1, kv_cache_usage=0.5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html><title>404 Not Found</title></html>",
        "process_cpu_seconds_total 12.5\n",
        "vllm:num_requests_waiting",
        "vllm:num_requests_waiting{engine=0} 5",
        'vllm:num_requests_waiting{engine="0"} many',
        'vllm:num_requests_waiting{engine="0"} NaN',
        'vllm:num_requests_waiting{engine="0"} +Inf',
    ],
)
def test_what_is_not_vllm_says_nothing(text: str) -> None:
    assert metrics_from(text) is None


@given(text=st.text(), rest=st.text())
def test_no_page_is_too_odd(text: str, rest: str) -> None:
    for page in (text, f"vllm:num_requests_waiting{text}\n{rest}", TWO_ENGINES + text):
        metrics = metrics_from(page)
        assert metrics is None or isinstance(metrics.waiting, int)


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://gpu:8000/v1", "http://gpu:8000/metrics"),
        ("http://gpu:8000/v1/", "http://gpu:8000/metrics"),
        ("https://gw.test/team/v1", "https://gw.test/team/metrics"),
        ("http://gpu:8000", "http://gpu:8000/metrics"),
        ("http://[::1]:8000/v1?key=x", "http://[::1]:8000/metrics"),
    ],
)
def test_the_page_lies_beside_v1(base_url: str, expected: str) -> None:
    assert metrics_url(base_url) == expected


COUNTERS = """\
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="qwen"} 1.2e+06
vllm:prompt_tokens_total{engine="1",model_name="qwen"} 34.0
vllm:prompt_tokens_total{engine="0",model_name="other"} 5.0
# TYPE vllm:prompt_tokens_created gauge
vllm:prompt_tokens_created{engine="0",model_name="qwen"} 1.7e+09
vllm:prompt_tokens_created{engine="1",model_name="qwen"} 1.8e+09
# TYPE vllm:prompt_tokens_by_source_total counter
vllm:prompt_tokens_by_source_total{engine="0",model_name="qwen",source="cache"} 77.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="qwen"} 410.0
"""


def test_tokens_are_counted_by_model_over_all_engines() -> None:
    assert token_counters_from(COUNTERS) == {
        "qwen": TokenCounters(prompt_tokens=1_200_034, completion_tokens=410, created_s=1.8e9),
        "other": TokenCounters(prompt_tokens=5, completion_tokens=0),
    }


def test_what_the_fake_counts_is_read() -> None:
    text = metrics_text(
        "qwen", running=2, waiting=1, kv_cache_usage=0.5, prompt_tokens=2_330, completion_tokens=410
    )
    assert token_counters_from(text) == {"qwen": TokenCounters(prompt_tokens=2_330, completion_tokens=410)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "process_cpu_seconds_total 12.5\n",
        'vllm:prompt_tokens_total{engine="0"} 5',
        'vllm:prompt_tokens_total{model_name="qwen"} many',
        'vllm:prompt_tokens_total{model_name="qwen"} NaN',
        'vllm:prompt_tokens_total{model_name="qwen"} +Inf',
        'vllm:prompt_tokens_created{model_name="qwen"} 1.7e+09',
    ],
)
def test_what_has_no_counters_counts_nothing(text: str) -> None:
    assert token_counters_from(text) is None
