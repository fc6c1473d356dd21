"""What the processes of a worker count, as Prometheus reads it from their parent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from models.errors import SettingsError
from models.pool import Queue
from tests.fakes.scraped import scrape
from tests.server_parts import free_port
from workers.adaptive_limit import AdaptiveLimit
from workers.circuit_breaker import CircuitBreaker
from workers.cluster.metric_names import CALL_LIMIT, PAGES_READ, WORKER_METRICS
from workers.cluster.metrics import share_between_processes, worker_metrics
from workers.cluster.metrics_server import serving_worker_metrics
from workers.vlm_admission import VlmAdmission


@pytest.fixture(autouse=True)
def _counted_anew() -> None:
    worker_metrics.cache_clear()


def test_children_are_counted_together_also_those_that_have_ended(tmp_path: Path) -> None:
    children, tasks = 2, 12
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.run_counting_pool", str(tmp_path)]
        + [str(number) for number in (free_port(), children, tasks)],
        check=True,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)
    assert (told["pages"], told["put_off"], told["stages"]) == (tasks, tasks, tasks)
    assert told["told"] == PAGES_READ.told
    assert told["processes"] > children
    kinds_of_files = 2
    assert told["files"] <= kinds_of_files * children
    assert told["files_after"] == 0
    assert told["memory"][-1] == "main"
    assert told["bytes"] > 2**20


def test_a_worker_without_children_tells_what_it_counted_itself(tmp_path: Path) -> None:
    admission = VlmAdmission(AdaptiveLimit(7), CircuitBreaker())
    worker_metrics().watch(admission)
    worker_metrics().ticket_unused(Queue.VLM)
    worker_metrics().page_retried("engine_failed")
    worker_metrics().source_refused(Queue.INTAKE, "empty_file")
    worker_metrics().page_ended(Queue.VLM, "vlm")
    worker_metrics().work_put_off(Queue.VLM, "store_unavailable")
    worker_metrics().call_ended("vlm_overloaded", 0.3)
    with worker_metrics().timed(Queue.VLM):
        pass
    port = free_port()
    with serving_worker_metrics(port, home=tmp_path, has_children=False):
        seen = scrape(port)
    assert seen.value("doctriage_worker_tickets_unused_total", "vlm") == 1
    assert seen.value("doctriage_worker_page_retries_total", "engine_failed") == 1
    assert seen.value("doctriage_worker_sources_refused_total", "empty_file", "intake") == 1
    assert seen.value("doctriage_worker_vlm_call_seconds_bucket", "vlm_overloaded", "0.25") == 0
    assert seen.value("doctriage_worker_vlm_call_seconds_bucket", "vlm_overloaded", "0.5") == 1
    assert seen.value("doctriage_worker_vlm_call_limit") == 7
    assert seen.value("doctriage_worker_vlm_calls_in_flight") == 0
    assert seen.values("doctriage_worker_vlm_breaker") == {("closed",): 1, ("half_open",): 0, ("open",): 0}
    assert set(seen.values("doctriage_worker_resident_memory_bytes")) == {("main",)}
    listed = {metric.name.removesuffix("_total"): metric for metric in WORKER_METRICS}
    assert set(seen.families) == set(listed)
    for name, family in seen.families.items():
        assert (family.documentation, family.type) == (listed[name].told, str(listed[name].kind))
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(listed[name].labels)


def test_a_worker_that_calls_no_vlm_tells_nothing_of_it(tmp_path: Path) -> None:
    port = free_port()
    with serving_worker_metrics(port, home=tmp_path, has_children=False):
        assert CALL_LIMIT.name not in scrape(port).families


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    port = free_port()
    with (
        serving_worker_metrics(port, home=tmp_path, has_children=False),
        pytest.raises(SettingsError, match=f"port {port} is not free.*--metrics-port"),
        serving_worker_metrics(port, home=tmp_path, has_children=False),
    ):
        pass


def test_who_has_begun_to_count_by_itself_cannot_count_in_files(tmp_path: Path) -> None:
    worker_metrics()
    with pytest.raises(RuntimeError):
        share_between_processes(tmp_path)
