"""Tickets of the embedded pool wake a reader that waits, and one that is killed while it waits blocks nobody."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection

from models.pool import Queue
from workers.local_pool.wakening import MOST_WAKES, LocalTickets, local_tickets

LONG_S = 120.0


def wait_once(tickets: LocalTickets, connection: Connection) -> None:
    connection.send("waiting")
    tickets.wait(Queue.OCR, LONG_S)
    connection.send("woken")
    time.sleep(LONG_S)


def test_a_send_wakes_who_waits_also_after_another_was_killed() -> None:
    context = multiprocessing.get_context("spawn")
    tickets = local_tickets(context)
    waiters = []
    for _ in range(2):
        ours, theirs = context.Pipe()
        process = context.Process(target=wait_once, args=(tickets, theirs), daemon=True)
        process.start()
        assert ours.recv() == "waiting"
        waiters.append((process, ours))
    (killed, _), (process, ours) = waiters
    time.sleep(0.5)  # so that it is in the midst of its wait
    killed.kill()
    killed.join()
    tickets.send(Queue.INTAKE)
    assert ours.recv() == "woken"
    process.kill()
    process.join()


def test_more_wakes_than_there_are_readers_are_not_kept() -> None:
    tickets = local_tickets(multiprocessing.get_context("spawn"))
    tickets.send(Queue.OCR, 10_000)
    tickets.send(Queue.ASSEMBLE, 10_000)
    assert tickets.wakes[Queue.OCR].get_value() == MOST_WAKES
    assert tickets.wakes[Queue.VLM].get_value() == 0
    assert tickets.depth(Queue.OCR) == 0
