"""An OTLP/HTTP receiver of tests: it reads requests with OpenTelemetry's own protobuf classes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class ReceivedSpan(NamedTuple):
    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    begin_ns: int
    end_ns: int
    attributes: dict[str, Any]
    kind: int
    status: int
    resource: dict[str, Any]
    scope: str
    links: tuple[str, ...]
    """The ids of spans."""


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class OtlpReceiver:
    def __init__(self, status: Callable[[int], int] = lambda number: 200) -> None:
        """``status``: what the request of this number, from 0 on, is answered with."""
        self.requests: list[Received] = []
        self.statuses = status
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver._take(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._lock = threading.Lock()
        self._taken: list[Received] = []
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.05), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = cast("tuple[str, int]", self._server.server_address)
        return f"http://{host}:{port}"

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        with self._lock:
            status = self.statuses(len(self.requests))
            received = Received(path, headers, body)
            self.requests.append(received)
            if status == 200:
                self._taken.append(received)
        return status

    @property
    def spans(self) -> list[ReceivedSpan]:
        with self._lock:
            taken = list(self._taken)
        return [span for each in taken if each.path == "/v1/traces" for span in spans_in(each.body)]

    def of_trace(self, trace_id: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.trace_id == trace_id]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def spans_in(body: bytes) -> list[ReceivedSpan]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        ReceivedSpan(
            _values(of_resource.resource.attributes).get("service.name", ""),
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            _values(span.attributes),
            span.kind,
            span.status.code,
            _values(of_resource.resource.attributes),
            of_scope.scope.name,
            tuple(link.span_id.hex() for link in span.links),
        )
        for of_resource in request.resource_spans
        for of_scope in of_resource.scope_spans
        for span in of_scope.spans
    ]


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value") or "", None) for each in attributes}
