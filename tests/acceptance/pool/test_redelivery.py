"""Redis gives a ticket away again once its visibility timeout is over. That costs nothing: no second call, no second
result, no second row in the ledger."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kombu import Connection

from tests.acceptance.pool.house import EVERYTHING, House, rows_of
from tests.acceptance.test_ingest_command_line import SENTENCE, write_scan
from tests.fakes.vlm_script import ChatRequest, Script
from tests.fakes.vlm_server import FakeVlm
from tests.pool_processes import PoolProcess

pytestmark = pytest.mark.slow

ANSWER_S = 12.0
VISIBLE_AFTER_S = 4.0
"""A third of what the answer takes, so that the ticket is given away again, and again."""

RECEIVED = re.compile(r"Task doctriage\.vlm\[([0-9a-f-]+)\] received")


def test_a_visibility_timeout_below_the_longest_task_is_refused_with_the_arithmetic(house: House) -> None:
    own = {"DOCTRIAGE_POOL__VISIBILITY_TIMEOUT_S": "20", "DOCTRIAGE_VLM__URL": "http://127.0.0.1:1/v1"}
    for command in (("worker", "--queues", "ocr"), ("beat", "--once")):
        refused = house.doctriage(*command, **own)
        assert refused.returncode == 2
        assert "DOCTRIAGE_POOL__VISIBILITY_TIMEOUT_S=20 is below the longest task, 1,500 s" in refused.stderr
        assert (
            "3 answers × 300 s + 1 lost call × 300 s + 120 s of waiting + 3 drawings × 60 s" in refused.stderr
        )
        assert "leave it out, or lower DOCTRIAGE_VLM__TIMEOUT_S" in refused.stderr


def test_a_ticket_that_is_given_away_during_its_call_is_one_call(house: House, tmp_path: Path) -> None:
    source = write_scan(tmp_path / "slow.png")
    with FakeVlm(Script(seconds_a_request=ANSWER_S, answer=transcript)) as vlm:
        house.workers.beat()
        _, *callers = house.begin_workers(EVERYTHING, "vlm", "vlm", DOCTRIAGE_VLM__URL=vlm.base_url)
        with restored_after(house.broker.url.get_secret_value(), VISIBLE_AFTER_S):
            done = house.ingest(source, "--out", tmp_path / "out", "--route", "vlm")
    assert done.returncode == 0, done.stderr + house.logs
    assert len(received(callers)) > len(set(received(callers))), "no ticket was given away again"
    assert len(vlm.seen) == 1
    [row] = rows_of(tmp_path / "out" / "pages.jsonl")
    assert (row["route"], row["state"]) == ("vlm", "done")
    assert house.rows("SELECT kind, vlm_pages FROM ledger ORDER BY kind") == [
        ("cpu_page", 0),
        ("vlm_call", 1),
    ]
    assert house.number("SELECT sum(losses) FROM pages") == 0


def transcript(_: ChatRequest) -> str:
    return "---\nlanguage: en\nrotation: 0\nblank: false\n---\n\n" + "\n\n".join([SENTENCE] * 6)


def received(callers: list[PoolProcess]) -> list[str]:
    """The tickets of each delivery."""
    return [ticket for caller in callers for ticket in RECEIVED.findall(caller.log.read_text("utf-8"))]


@contextmanager
def restored_after(broker_url: str, visibility_timeout_s: float) -> Iterator[None]:
    """Meanwhile somebody else on this broker gives away, as every worker does, what was not acknowledged in time; with
    a visibility timeout of its own, as another release of the program or a careless script might have."""
    ended = threading.Event()

    def restore() -> None:
        options = {"visibility_timeout": visibility_timeout_s}
        with Connection(broker_url, transport_options=options) as connection, connection.channel() as channel:
            while not ended.wait(0.5):
                channel.qos.restore_visible(interval=1)

    thread = threading.Thread(target=restore)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
