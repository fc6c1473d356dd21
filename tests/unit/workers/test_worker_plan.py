"""What a worker serves and how, as tables."""

from __future__ import annotations

import socket

import pytest

from models.errors import SettingsError
from models.pool import Queue
from pipeline.settings import Settings, load_settings
from workers.cluster import worker_plan
from workers.cluster.worker_plan import DEFAULT_QUEUES, PoolKind, plan_worker
from workers.transcriber import PAGES_AHEAD

WITH_VLM = {"vlm": {"url": "http://gpu:8000/v1", "concurrency": 48}}
HOST = socket.gethostname()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(worker_plan, "usable_cpus", lambda: 7)
    return load_settings(WITH_VLM)


@pytest.mark.parametrize(
    ("queues", "concurrency", "kind", "expected", "reads"),
    [
        (DEFAULT_QUEUES, None, PoolKind.PROCESSES, 7, True),
        ((Queue.OCR,), None, PoolKind.PROCESSES, 7, True),
        ((Queue.OCR,), 3, PoolKind.PROCESSES, 3, True),
        ((Queue.INTAKE,), None, PoolKind.PROCESSES, 1, True),
        ((Queue.ASSEMBLE,), None, PoolKind.PROCESSES, 1, False),
        ((Queue.INTAKE, Queue.ASSEMBLE), None, PoolKind.PROCESSES, 1, True),
        ((Queue.VLM,), None, PoolKind.THREADS, 48 + PAGES_AHEAD, False),
        ((Queue.VLM,), 5, PoolKind.THREADS, 5, False),
    ],
)
def test_queues_decide_what_works_and_how_much_at_a_time(
    settings: Settings,
    queues: tuple[Queue, ...],
    concurrency: int | None,
    kind: PoolKind,
    expected: int,
    reads: bool,
) -> None:
    plan = plan_worker(settings, queues, concurrency=concurrency)

    assert (plan.queues, plan.kind, plan.concurrency, plan.reads_documents) == (queues, kind, expected, reads)


def test_a_queue_that_is_named_twice_is_served_once(settings: Settings) -> None:
    assert plan_worker(settings, [Queue.OCR, Queue.INTAKE, Queue.OCR]).queues == (Queue.OCR, Queue.INTAKE)


def test_no_two_workers_have_a_name_in_common(settings: Settings) -> None:
    nodes = {plan_worker(settings, [Queue.INTAKE, Queue.OCR]).node for _ in range(100)}

    assert len(nodes) == 100
    assert all(node.startswith("intake-ocr-") and node.endswith(f"@{HOST}") for node in nodes)


def test_a_name_that_is_given_is_kept(settings: Settings) -> None:
    assert plan_worker(settings, [Queue.OCR], name="scans-1.b_2").node == f"scans-1.b_2@{HOST}"


@pytest.mark.parametrize(
    ("queues", "name", "message"),
    [
        ([], None, "--queues names no queue; there are intake, ocr, vlm, assemble"),
        ([Queue.OCR], "a@b", "--name 'a@b': write it with letters, digits, dots, dashes and underscores"),
        ([Queue.OCR], "", "--name '': write it with letters, digits, dots, dashes and underscores"),
        (
            [Queue.OCR, Queue.VLM],
            None,
            "--queues ocr,vlm: a worker of vlm waits on threads, and the others work in processes; start two workers, "
            "one with --queues vlm and one with --queues ocr",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    settings: Settings, queues: list[Queue], name: str | None, message: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        plan_worker(settings, queues, name=name)

    assert str(refusal.value) == message


def test_a_worker_of_the_vlm_needs_to_know_where_it_is() -> None:
    with pytest.raises(SettingsError, match="no VLM is configured; set DOCTRIAGE_VLM__URL"):
        plan_worker(load_settings(), [Queue.VLM])
