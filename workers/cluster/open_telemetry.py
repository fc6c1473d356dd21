"""OpenTelemetry's SDK, set up from its own variables. ``workers.cluster.tracing`` imports it, when it is needed."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from workers.cluster.spans import Attributes

TIMEOUT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
TIMEOUT_S: Final = 5.0
"""How long a batch waits for a collector that does not answer, unless the environment says: so long may a process take
to end. OpenTelemetry's own default is twice as long."""


class OpenSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes(attributes)

    def fail(self, error_type: str) -> None:
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR))


class Tracing:
    """One a process. Spans are sent in batches, from a thread."""

    def __init__(self) -> None:
        is_bounded = any(os.environ.get(name) for name in TIMEOUT_VARIABLES)
        exporter = OTLPSpanExporter(timeout=None if is_bounded else TIMEOUT_S)
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("doctriage")
        self._propagator = TraceContextTextMapPropagator()
        atexit.register(self.end)

    @contextmanager
    def producer(self, name: str, attributes: Attributes) -> Iterator[tuple[OpenSpan, str]]:
        """The ``traceparent`` is that of the span."""
        with self._span(name, SpanKind.PRODUCER, attributes, None) as span:
            carrier: dict[str, str] = {}
            self._propagator.inject(carrier)
            yield span, carrier["traceparent"]

    @contextmanager
    def consumer(self, name: str, traceparent: str | None, attributes: Attributes) -> Iterator[OpenSpan]:
        """Below ``traceparent``, else a trace of its own."""
        carrier = {} if traceparent is None else {"traceparent": traceparent}
        parent = self._propagator.extract(carrier, context=Context())
        with self._span(name, SpanKind.CONSUMER, attributes, parent) as span:
            yield span

    @contextmanager
    def client(self, name: str, attributes: Attributes) -> Iterator[OpenSpan]:
        with self._span(name, SpanKind.CLIENT, attributes, None) as span:
            yield span

    def end(self) -> None:
        """Send what was not sent yet. What the collector does not take in time is lost."""
        atexit.unregister(self.end)
        self._provider.shutdown()

    @contextmanager
    def _span(
        self, name: str, kind: SpanKind, attributes: Attributes, parent: Context | None
    ) -> Iterator[OpenSpan]:
        with self._tracer.start_as_current_span(
            name,
            context=parent,
            kind=kind,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield OpenSpan(span)


def _resource() -> Resource:
    """``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` have the last word."""
    is_named = os.environ.get("OTEL_SERVICE_NAME") or f"{SERVICE_NAME}=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return Resource.create({} if is_named else {SERVICE_NAME: "doctriage"})
