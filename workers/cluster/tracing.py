"""Traces, for those who name a collector in OpenTelemetry's own variables. Nobody else pays for them: OpenTelemetry is
imported with the first span, which is after a worker has forked.

A submission's trace begins with whoever submits it; its ``traceparent`` (W3C) goes along in the database, and each
piece of work about it is a span below. No text of a document is in any, nor its name.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from models.errors import DoctriageError
from workers.cluster.spans import Attributes, Span

if TYPE_CHECKING:
    from workers.cluster.open_telemetry import Tracing

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
EXPORTERS: Final = "OTEL_TRACES_EXPORTER"
OFF: Final = "OTEL_SDK_DISABLED"


class _NoSpan:
    def set(self, attributes: Attributes) -> None: ...

    def fail(self, error_type: str) -> None: ...


def is_tracing() -> bool:
    """What the environment asks for, as OpenTelemetry's specification has it. There is one exporter, OTLP."""
    if os.environ.get(OFF, "").strip().lower() == "true":
        return False
    exporters = os.environ.get(EXPORTERS, "").strip()
    if exporters:
        return "otlp" in {name.strip() for name in exporters.split(",")}
    return any(os.environ.get(name) for name in ENDPOINTS)


@contextmanager
def submission_span(attributes: Attributes) -> Iterator[str | None]:
    """A submission is made inside. Yields its ``traceparent``; None where there are no traces."""
    if not is_tracing():
        yield None
        return
    with _tracing().producer("submit", attributes) as (span, traceparent), _failing(span):
        yield traceparent


@contextmanager
def stage_span(name: str, traceparent: str | None, attributes: Attributes) -> Iterator[Span]:
    """A piece of work is done inside, for the submission that came with ``traceparent``."""
    if not is_tracing():
        yield _NoSpan()
        return
    with _tracing().consumer(name, traceparent, attributes) as span, _failing(span):
        yield span


@contextmanager
def client_span(name: str, attributes: Attributes) -> Iterator[Span]:
    """A service is called inside."""
    if not is_tracing():
        yield _NoSpan()
        return
    with _tracing().client(name, attributes) as span, _failing(span):
        yield span


def end_tracing() -> None:
    """Send what this process has not sent yet, and no more after that; takes at most a few seconds."""
    with _lock:
        tracing = _by_process.pop(os.getpid(), None)
    if tracing is not None:
        tracing.end()


_lock = threading.Lock()
_by_process: dict[int, Tracing] = {}
os.register_at_fork(after_in_child=_by_process.clear)


def _tracing() -> Tracing:
    """Of this process: what its parent had, it does not share."""
    with _lock:
        tracing = _by_process.get(os.getpid())
        if tracing is None:
            from workers.cluster.open_telemetry import Tracing

            tracing = _by_process[os.getpid()] = Tracing()
        return tracing


@contextmanager
def _failing(span: Span) -> Iterator[None]:
    """An error is told by its code: its message may quote a document."""
    try:
        yield
    except BaseException as error:
        span.fail(error.code if isinstance(error, DoctriageError) else type(error).__name__)
        raise
