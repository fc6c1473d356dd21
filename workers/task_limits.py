"""How long the pool's tasks may take, from the settings: what bounds a task, and what a broker must wait for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from models.errors import SettingsError
from models.pool import Queue
from pipeline.settings import Settings

ENGINE_LOAD_S: Final = 300.0
"""What loading engines and weights may take before a process reads its first page, on a cold disk or a busy machine."""

TURN_S: Final = 1.0
"""What a process reads of one document before it looks whose turn it is: no page is begun later than that."""

WRITE_LIMIT_S: Final = 1_200.0
"""Writing thousands of pages takes a minute; twenty mean a store that hangs."""

BROKER_SLACK_S: Final = 60.0
"""How much longer the broker waits than a task may take, so that a task ends before its message is given away."""

RABBITMQ_CONSUMER_TIMEOUT_S: Final = 1_800.0
"""RabbitMQ's own default, from 3.8.17 on: a worker that keeps a message for longer loses its connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimit:
    """The longest that a task of ``queue`` takes. ``sum_of`` shows the arithmetic; ``variables`` are the
    settings that lower it."""

    queue: Queue
    longest_s: float
    sum_of: str
    variables: tuple[str, ...]


def task_limits(settings: Settings) -> Mapping[Queue, TaskLimit]:
    """One of each queue, whether or not this machine's workers serve it: a message's time is told by all workers."""
    limits = (_intake_limit(settings), _ocr_limit(settings), _vlm_limit(settings), _assemble_limit())
    return {limit.queue: limit for limit in limits}


def longest_task(settings: Settings) -> TaskLimit:
    return max(task_limits(settings).values(), key=lambda limit: limit.longest_s)


def visibility_timeout_s(settings: Settings) -> float:
    """How long Redis waits for a message to be acknowledged before it gives it to another worker. Raises SettingsError
    where the settings say less than the longest task takes."""
    longest, chosen_s = longest_task(settings), settings.pool.visibility_timeout_s
    if chosen_s is None:
        return longest.longest_s + BROKER_SLACK_S
    if chosen_s < longest.longest_s:
        raise SettingsError(
            f"DOCTRIAGE_POOL__VISIBILITY_TIMEOUT_S={_number(chosen_s)} is below the longest task, "
            f"{_number(longest.longest_s)} s in the queue {longest.queue}: {longest.sum_of}; leave it out"
            f"{_or_lower(longest)}"
        )
    return chosen_s


def consumer_timeout_note(settings: Settings) -> str | None:
    """What RabbitMQ must be told, None where its own default is enough."""
    longest = longest_task(settings)
    needed_s = longest.longest_s + BROKER_SLACK_S
    if needed_s <= RABBITMQ_CONSUMER_TIMEOUT_S:
        return None
    return (
        f"the longest task takes up to {_number(longest.longest_s)} s in the queue {longest.queue} ({longest.sum_of}), "
        f"and RabbitMQ by itself waits {_number(RABBITMQ_CONSUMER_TIMEOUT_S)} s; see that its rabbitmq.conf "
        f"has consumer_timeout = {round(needed_s * 1000)} or more{_or_lower(longest)}"
    )


def _intake_limit(settings: Settings) -> TaskLimit:
    look_s = settings.executor.page_timeout_s
    return TaskLimit(
        queue=Queue.INTAKE,
        longest_s=look_s + ENGINE_LOAD_S,
        sum_of=f"{_number(look_s)} s for the document + {_number(ENGINE_LOAD_S)} s to load engines",
        variables=("DOCTRIAGE_EXECUTOR__PAGE_TIMEOUT_S",),
    )


def _ocr_limit(settings: Settings) -> TaskLimit:
    page_s = settings.executor.page_timeout_s
    return TaskLimit(
        queue=Queue.OCR,
        longest_s=TURN_S + page_s + ENGINE_LOAD_S,
        sum_of=(
            f"{_number(TURN_S)} s of pages + {_number(page_s)} s for the last one + {_number(ENGINE_LOAD_S)} s to load "
            "engines"
        ),
        variables=("DOCTRIAGE_EXECUTOR__PAGE_TIMEOUT_S",),
    )


def _vlm_limit(settings: Settings) -> TaskLimit:
    """Answers that are no good end a page after ``max_answers``; a service that ails ends it once it has waited
    ``wait_s``, and the call that was under way then may still run into its own limit. Each answer may ask for a new
    drawing."""
    vlm, draw_s = settings.vlm, settings.rasterise.timeout_s
    answers = min(vlm.max_answers, vlm.max_calls)
    return TaskLimit(
        queue=Queue.VLM,
        longest_s=(answers + 1) * vlm.timeout_s + vlm.wait_s + answers * draw_s,
        sum_of=(
            f"{_counted(answers, 'answer')} × {_number(vlm.timeout_s)} s + 1 lost call × {_number(vlm.timeout_s)} s + "
            f"{_number(vlm.wait_s)} s of waiting + {_counted(answers, 'drawing')} × {_number(draw_s)} s"
        ),
        variables=("DOCTRIAGE_VLM__TIMEOUT_S", "DOCTRIAGE_VLM__MAX_ANSWERS", "DOCTRIAGE_VLM__WAIT_S"),
    )


def _assemble_limit() -> TaskLimit:
    return TaskLimit(
        queue=Queue.ASSEMBLE,
        longest_s=WRITE_LIMIT_S,
        sum_of=f"{_number(WRITE_LIMIT_S)} s to write the outputs of a document",
        variables=(),
    )


def _or_lower(limit: TaskLimit) -> str:
    return f", or lower {' or '.join(limit.variables)}" if limit.variables else ""


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _number(seconds: float) -> str:
    return f"{seconds:,.10g}"
