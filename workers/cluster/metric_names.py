"""Every metric there is. ``docs/observability.md`` lists them, and a test compares the two.

No label holds anything of which there can be many: no document, submission, page or process number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """``name`` is the one under which a dashboard finds it; a histogram's series add ``_bucket``, ``_sum`` and
    ``_count``."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...] = ()
    told: str


def _counter(name: str, told: str, *labels: str) -> Metric:
    return Metric(name=f"doctriage_{name}_total", kind=MetricKind.COUNTER, labels=labels, told=told)


def _gauge(name: str, told: str, *labels: str) -> Metric:
    return Metric(name=f"doctriage_{name}", kind=MetricKind.GAUGE, labels=labels, told=told)


def _histogram(name: str, told: str, *labels: str) -> Metric:
    return Metric(name=f"doctriage_{name}", kind=MetricKind.HISTOGRAM, labels=labels, told=told)


# The pool, from its database and its broker.

DATABASE_UP: Final = _gauge("database_up", "1 where the database answered, else 0.")
BROKER_UP: Final = _gauge("broker_up", "1 where the broker answered, else 0.")
PAGES: Final = _counter("pages", "Pages brought to their end, as booked.", "route", "cost_centre")
PAGES_ESCALATED: Final = _counter(
    "pages_escalated", "Pages that the CPU read and handed on to the VLM.", "cost_centre"
)
PAGES_CACHED: Final = _counter("pages_cached", "Pages that earlier runs had read.", "cost_centre")
PAGE_REASONS: Final = _counter(
    "page_reasons", "Pages read on the CPU, by the first reason that triage had for the VLM.", "reason"
)
PAGES_FAILED: Final = _counter("pages_failed", "Pages given up.", "code")
ATTEMPTS_FAILED: Final = _counter(
    "page_attempts_failed", "Attempts on the CPU that came to nothing, given up or not.", "code"
)
DEAD_PAGES: Final = _gauge("dead_pages", "Pages that failed for good and were not tried again.", "code")
VLM_CALLS: Final = _counter("vlm_calls", "Calls to the VLM, by what became of them.", "verdict", "model")
PROMPT_TOKENS: Final = _counter(
    "prompt_tokens", "Tokens of prompts, as billed, cached ones among them.", "model", "cost_centre"
)
CACHED_TOKENS: Final = _counter(
    "cached_prompt_tokens", "Tokens of prompts that the server had in its cache.", "model", "cost_centre"
)
COMPLETION_TOKENS: Final = _counter(
    "completion_tokens", "Tokens of answers, as billed.", "model", "cost_centre"
)
PREDICTED_TOKENS: Final = _counter(
    "predicted_prompt_tokens", "Tokens of prompts, as predicted before the calls.", "model", "cost_centre"
)
COST: Final = _counter("cost_microunits", "Cost in millionths of the currency.", "currency", "cost_centre")
REVERSED_COST: Final = _counter(
    "reversed_cost_microunits", "Cost taken back by reversals, in millionths.", "currency", "cost_centre"
)
UNPRICED: Final = _counter("unpriced_entries", "Entries of the ledger that had no price.")
WAITING: Final = _gauge("queue_waiting", "What waits to be claimed: sources or pages.", "queue")
OLDEST_WAITING: Final = _gauge(
    "queue_oldest_waiting_seconds", "Age of the oldest submission that waits in the queue.", "queue"
)
LEASES: Final = _gauge("queue_leases", "Sources or pages that a worker holds.", "queue")
LOSSES: Final = _gauge("queue_losses", "Workers lost over what waits or is held.", "queue")
MESSAGES: Final = _gauge("queue_messages", "Tickets at the broker that no worker has taken.", "queue")
SUBMISSIONS_OPEN: Final = _gauge("submissions_open", "Submissions that are not over.")
OLDEST_SUBMISSION: Final = _gauge("oldest_submission_seconds", "Age of the oldest open submission.")
PLACES: Final = _gauge("vlm_places", "Places for calls in flight, over all workers.", "service")
PLACES_TAKEN: Final = _gauge("vlm_places_taken", "Those of them that are taken.", "service")

POOL_METRICS: Final = (
    *(DATABASE_UP, BROKER_UP),
    *(PAGES, PAGES_ESCALATED, PAGES_CACHED, PAGE_REASONS, PAGES_FAILED, ATTEMPTS_FAILED, DEAD_PAGES),
    *(VLM_CALLS, PROMPT_TOKENS, CACHED_TOKENS, COMPLETION_TOKENS, PREDICTED_TOKENS),
    *(COST, REVERSED_COST, UNPRICED),
    *(WAITING, OLDEST_WAITING, LEASES, LOSSES, MESSAGES),
    *(SUBMISSIONS_OPEN, OLDEST_SUBMISSION, PLACES, PLACES_TAKEN),
)

# A worker, of its processes.

STAGE_SECONDS: Final = _histogram(
    "worker_stage_seconds", "Time of one piece of work, from its claim to its end.", "queue"
)
PAGES_READ: Final = _counter(
    "worker_pages_read", "Pages that this worker brought to the end of a stage.", "queue", "outcome"
)
RETRIES: Final = _counter("worker_page_retries", "Attempts at pages that will be made again.", "code")
REFUSED: Final = _counter("worker_sources_refused", "Sources that a stage refused.", "queue", "code")
UNUSED_TICKETS: Final = _counter("worker_tickets_unused", "Tickets that found nothing to claim.", "queue")
PUT_OFF: Final = _counter(
    "worker_work_put_off", "Work that went back because the machine or a service failed it.", "queue", "code"
)
MEMORY: Final = _gauge(
    "worker_resident_memory_bytes",
    "Resident memory of a process and of the programs that it has started; main, and from the oldest child 1, 2, …",
    "process",
)
CALL_SECONDS: Final = _histogram(
    "worker_vlm_call_seconds", "Time of one call to the VLM; ok, or the code of its error.", "code"
)
CALLS_IN_FLIGHT: Final = _gauge("worker_vlm_calls_in_flight", "Calls of this worker that are under way.")
CALL_LIMIT: Final = _gauge("worker_vlm_call_limit", "How many calls the service's load allows this worker.")
BREAKER: Final = _gauge(
    "worker_vlm_breaker", "1 for the state that the circuit breaker is in, 0 for the others.", "state"
)

PROCESS_METRICS: Final = (STAGE_SECONDS, PAGES_READ, RETRIES, REFUSED, UNUSED_TICKETS, PUT_OFF, CALL_SECONDS)
VLM_METRICS: Final = (CALLS_IN_FLIGHT, CALL_LIMIT, BREAKER)
WORKER_METRICS: Final = (*PROCESS_METRICS, MEMORY, *VLM_METRICS)

# The API, of the server's process.

API_REQUESTS: Final = _counter(
    "api_requests", "Requests that were answered, by the path's pattern.", "method", "route", "status"
)
API_SECONDS: Final = _histogram("api_request_seconds", "Time until the answer was sent whole.", "route")
API_BYTES: Final = _counter("api_received_bytes", "Bytes of requests.")

API_METRICS: Final = (API_REQUESTS, API_SECONDS, API_BYTES)
