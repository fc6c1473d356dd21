"""What Celery does with a ticket on both brokers: once, and again where the worker was lost."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from models.pool import Queue
from tests.integration.pool.traced_worker import drained, tickets_over, traced_worker, wait_until
from tests.server_parts import Broker

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "traces"


@pytest.fixture
def hold(folder: Path) -> Path:
    """Tasks go on once this file is gone."""
    folder.mkdir()
    path = folder / "hold"
    path.touch()
    return path


def test_each_ticket_is_worked_off_once_whichever_queue_it_is_in(broker: Broker, folder: Path) -> None:
    tickets = tickets_over(broker)
    tickets.send(Queue.INTAKE, 2)

    with traced_worker(broker, folder, queues="intake,ocr,assemble", concurrency=2) as worker:
        tickets.send(Queue.OCR, 2)
        tickets.send(Queue.ASSEMBLE)
        tickets.send(Queue.VLM)
        worker.await_ended(5)
        worker.await_accepted(5)
        worker.signal(signal.SIGTERM)

        assert worker.wait() == 0
        assert len(worker.begun) == 5

    assert {queue: tickets.depth(queue) for queue in Queue} == {
        Queue.INTAKE: 0,
        Queue.OCR: 0,
        Queue.VLM: 1,
        Queue.ASSEMBLE: 0,
    }


def test_a_worker_takes_no_ticket_before_its_time(broker: Broker, folder: Path, hold: Path) -> None:
    tickets = tickets_over(broker)

    with traced_worker(broker, folder) as worker:
        tickets.send(Queue.OCR, 3)
        worker.await_begun(1)
        assert tickets.depth(Queue.OCR) == 2

        hold.unlink()
        worker.await_ended(3)


def test_a_ticket_whose_process_is_killed_is_given_away(broker: Broker, folder: Path, hold: Path) -> None:
    tickets = tickets_over(broker)

    with traced_worker(broker, folder) as worker:
        tickets.send(Queue.OCR)
        worker.await_begun(1)
        (victim,) = worker.begun
        psutil.Process(victim).kill()
        hold.unlink()
        worker.await_ended(1)

        assert victim not in worker.ended
        worker.wait_until(lambda: drained(tickets, Queue.OCR))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_stop_ends_the_task_it_knows_of_and_takes_no_other(
    broker: Broker, folder: Path, hold: Path, number: signal.Signals
) -> None:
    tickets = tickets_over(broker)

    with traced_worker(broker, folder) as worker:
        tickets.send(Queue.OCR, 2)
        worker.await_accepted(1)
        worker.signal(number)
        worker.await_word("Warm shutdown" if number is signal.SIGTERM else "Hitting Ctrl+C again")
        assert worker.process.poll() is None

        hold.unlink()
        worker.wait()
        assert len(worker.ended) == 1

    assert tickets.depth(Queue.OCR) == 1


def test_a_second_interrupt_does_not_wait_for_the_task(broker: Broker, folder: Path, hold: Path) -> None:
    tickets = tickets_over(broker)

    with traced_worker(broker, folder) as worker:
        tickets.send(Queue.OCR)
        worker.await_begun(1)
        worker.signal(signal.SIGINT)
        worker.await_word("Hitting Ctrl+C again")
        worker.signal(signal.SIGINT)
        worker.wait()

        assert hold.exists()
        assert worker.ended == []


def test_calls_of_the_vlm_wait_on_threads_of_one_process(broker: Broker, folder: Path, hold: Path) -> None:
    tickets = tickets_over(broker)

    with traced_worker(broker, folder, queues="vlm", concurrency=12) as worker:
        tickets.send(Queue.VLM, 12)
        worker.await_begun(12)
        worker.await_accepted(12)
        assert set(worker.begun) == {worker.process.pid}

        worker.signal(signal.SIGTERM)
        worker.await_word("Warm shutdown")
        hold.unlink()
        assert worker.wait() == 0
        assert len(worker.ended) == 12

    assert tickets.depth(Queue.VLM) == 0


def test_a_worker_finds_its_broker_again_and_says_that_it_was_gone(
    broker: Broker, folder: Path, hold: Path
) -> None:
    tickets = tickets_over(broker)

    with traced_worker(broker, folder) as worker:
        tickets.send(Queue.OCR)
        worker.await_begun(1)
        broker.stop()
        worker.await_word("Cannot connect to")
        hold.unlink()
        worker.await_ended(1)
        assert worker.process.poll() is None

        broker.start()
        worker.await_word("Connected to", times=2)
        tickets.send(Queue.OCR)
        worker.await_ended(2)
        assert broker.url.get_secret_value().rpartition("@")[0].rpartition(":")[2] not in worker.log


def test_a_worker_goes_on_when_the_broker_has_lost_everything(broker: Broker, folder: Path) -> None:
    tickets = tickets_over(broker)

    with traced_worker(broker, folder) as worker:
        tickets.send(Queue.OCR)
        worker.await_ended(1)
        broker.lose_everything()
        wait_until(lambda: drained(tickets, Queue.OCR))
        tickets.send(Queue.OCR)
        worker.await_ended(2)
