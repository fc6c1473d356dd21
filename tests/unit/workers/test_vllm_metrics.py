"""vLLM's metrics, as it writes them and as others do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.vlm_answers import metrics_text
from workers.vllm_metrics import VllmMetrics, metrics_from, metrics_url

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
