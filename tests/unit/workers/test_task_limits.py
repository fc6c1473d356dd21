"""The longest task of each queue, as a table, and what follows for the brokers."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from models.errors import SettingsError
from models.pool import Queue
from pipeline.settings import Settings, load_settings
from workers.cluster.worker import say_what_the_broker_needs
from workers.logs import set_up_logs
from workers.task_limits import consumer_timeout_note, longest_task, task_limits, visibility_timeout_s

SLOW_PAGES = {"executor": {"page_timeout_s": 1_800.0}}
QUICK = {"executor": {"page_timeout_s": 10.0}, "vlm": {"timeout_s": 60.0, "wait_s": 30.0}}


@pytest.mark.parametrize(
    ("overrides", "queue", "longest_s", "sum_of"),
    [
        ({}, Queue.INTAKE, 600, "300 s for the document + 300 s to load engines"),
        ({}, Queue.OCR, 601, "1 s of pages + 300 s for the last one + 300 s to load engines"),
        ({}, Queue.ASSEMBLE, 1_200, "1,200 s to write the outputs of a document"),
        (
            {},
            Queue.VLM,
            1_500,
            "3 answers × 300 s + 1 lost call × 300 s + 120 s of waiting + 3 drawings × 60 s",
        ),
        (
            {"vlm": {"max_answers": 5, "max_calls": 1, "wait_s": 0.5}, "rasterise": {"timeout_s": 10.0}},
            Queue.VLM,
            610.5,
            "1 answer × 300 s + 1 lost call × 300 s + 0.5 s of waiting + 1 drawing × 10 s",
        ),
    ],
)
def test_the_longest_task_is_a_sum_of_settings(
    overrides: dict[str, object], queue: Queue, longest_s: float, sum_of: str
) -> None:
    limit = task_limits(load_settings(overrides))[queue]

    assert (limit.queue, limit.longest_s, limit.sum_of) == (queue, longest_s, sum_of)


@pytest.mark.parametrize(
    ("overrides", "queue"),
    [({}, Queue.VLM), (SLOW_PAGES, Queue.OCR), (QUICK, Queue.ASSEMBLE)],
)
def test_the_longest_of_all(overrides: dict[str, object], queue: Queue) -> None:
    assert longest_task(load_settings(overrides)).queue is queue


@pytest.mark.parametrize(("chosen_s", "timeout_s"), [(None, 1_560), (1_500, 1_500), (90_000, 90_000)])
def test_redis_waits_for_longer_than_the_longest_task(chosen_s: float | None, timeout_s: float) -> None:
    assert visibility_timeout_s(chosen(chosen_s)) == timeout_s


@pytest.mark.parametrize(
    ("overrides", "chosen_s", "message"),
    [
        (
            {},
            20,
            "DOCTRIAGE_POOL__VISIBILITY_TIMEOUT_S=20 is below the longest task, 1,500 s in the queue vlm: 3 answers × "
            "300 s + 1 lost call × 300 s + 120 s of waiting + 3 drawings × 60 s; leave it out, or lower "
            "DOCTRIAGE_VLM__TIMEOUT_S or DOCTRIAGE_VLM__MAX_ANSWERS or DOCTRIAGE_VLM__WAIT_S",
        ),
        (
            SLOW_PAGES,
            1_560,
            "DOCTRIAGE_POOL__VISIBILITY_TIMEOUT_S=1,560 is below the longest task, 2,101 s in the queue ocr: 1 s of "
            "pages + 1,800 s for the last one + 300 s to load engines; leave it out, or lower "
            "DOCTRIAGE_EXECUTOR__PAGE_TIMEOUT_S",
        ),
        (
            QUICK,
            1_199.5,
            "DOCTRIAGE_POOL__VISIBILITY_TIMEOUT_S=1,199.5 is below the longest task, 1,200 s in the queue assemble: "
            "1,200 s to write the outputs of a document; leave it out",
        ),
    ],
)
def test_a_timeout_below_the_longest_task_is_refused_with_the_arithmetic(
    overrides: dict[str, object], chosen_s: float, message: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        visibility_timeout_s(chosen(chosen_s, overrides))

    assert str(refusal.value) == message


def test_rabbitmq_needs_no_word_by_default() -> None:
    assert consumer_timeout_note(load_settings()) is None


def test_rabbitmq_is_told_to_wait_for_longer_tasks() -> None:
    assert consumer_timeout_note(load_settings(SLOW_PAGES)) == (
        "the longest task takes up to 2,101 s in the queue ocr (1 s of pages + 1,800 s for the last one + 300 s to "
        "load engines), and RabbitMQ by itself waits 1,800 s; see that its rabbitmq.conf has consumer_timeout = "
        "2161000 or more, or lower DOCTRIAGE_EXECUTOR__PAGE_TIMEOUT_S"
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [("amqp://rabbit:5672/doctriage", ["consumer_timeout_needed"]), ("redis://redis:6379/0", [])],
)
def test_a_worker_says_so_of_rabbitmq_alone_and_does_not_know_what_that_was_told(
    url: str, said: list[str]
) -> None:
    """So it is no warning."""
    set_up_logs("info")
    settings = load_settings({**SLOW_PAGES, "pool": {"broker_url": url}})
    with capture_logs() as lines:
        say_what_the_broker_needs(settings)
    assert [line["event"] for line in lines] == said
    assert {line["log_level"] for line in lines} <= {"info"}


def chosen(timeout_s: float | None, overrides: dict[str, object] | None = None) -> Settings:
    return load_settings({**(overrides or {}), "pool": {"visibility_timeout_s": timeout_s}})
