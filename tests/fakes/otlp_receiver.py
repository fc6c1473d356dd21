"""A collector of traces that speaks OTLP over HTTP, as the exporter of the project does."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1 import trace_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """``parent_id`` is None for the first of a trace; ``kind`` such as ``client``."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str | None
    is_error: bool
    status_message: str
    events: int
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]


@dataclass(slots=True)
class OtlpReceiver:
    port: int = 0
    spans: list[ReceivedSpan] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def take(self, path: str, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._lock:
            self.paths.append(path)
            for resource in request.resource_spans:
                about = _values(resource.resource.attributes)
                for scope in resource.scope_spans:
                    self.spans.extend(_received(span, about) for span in scope.spans)


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    receiver = OtlpReceiver()

    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.take(self.path, body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Take) as server:
        receiver.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


def _received(span: trace_pb2.Span, resource: Mapping[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        is_error=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        status_message=span.status.message,
        events=len(span.events),
        attributes=_values(span.attributes),
        resource=resource,
    )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None
