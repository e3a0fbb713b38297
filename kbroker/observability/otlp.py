"""Sending to an OpenTelemetry receiver by OTLP/HTTP: whatever is exported, in the order it was given.

A thread of its own sends, one request at a time, and is there from the first one on.

Invariants: what waits is bounded; what finds no room, or is not taken after some attempts, is dropped and
counted. Nobody waits for a receiver but `close`, and that for a moment only.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from kbroker import __version__

if TYPE_CHECKING:
    from kbroker.config.settings import Settings

logger = logging.getLogger("kbroker.otlp")

PROTOBUF: Final = "application/x-protobuf"
TRACES: Final = "/v1/traces"
METRICS: Final = "/v1/metrics"

_MOST_WAITING = 64  # requests
_TIMEOUT_SECONDS = 10.0
_TRY_AGAIN = (429, 502, 503, 504)  # what the specification says to try again
_PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
_LONGEST_PAUSE_SECONDS = 30.0
_TELL_AGAIN_SECONDS = 60.0


class _Request(NamedTuple):
    path: str
    items: int
    body: Callable[[], bytes]


class OtlpSender:
    def __init__(self, endpoint: str, headers: Mapping[str, str] | None = None) -> None:
        """``endpoint``: scheme, host and port, and what stands before /v1 in paths."""
        address = urlsplit(endpoint)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"{endpoint} is no address of a receiver, such as http://127.0.0.1:4318")
        self.endpoint = endpoint
        self._tls = address.scheme == "https"
        self._host, self._port = address.hostname, address.port
        self._path = address.path.rstrip("/")
        self._headers = {"User-Agent": f"kbroker/{__version__}", "Content-Type": PROTOBUF, **(headers or {})}
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._ends = 0.0  # when nothing is tried again any more
        self._told = -_TELL_AGAIN_SECONDS
        self.sent: Counter[str] = Counter()  # items, such as spans, by path
        self.dropped: Counter[str] = Counter()

    def send(self, path: str, items: int, body: Callable[[], bytes]) -> bool:
        """Whether there was room. ``body``: made by the sender's thread, in protobuf."""
        with self._changed:
            if self._closed or len(self._waiting) >= _MOST_WAITING:
                self.dropped[path] += items
                return False
            self._waiting.append(_Request(path, items, body))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)
                self._thread.start()
            self._changed.notify()
            return True

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Send what waits, as far as that goes within the time. Blocks."""
        with self._changed:
            self._closed = True
            self._ends = monotonic() + timeout_seconds
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    # in the thread

    def _run(self) -> None:
        connection: HTTPConnection | None = None
        while (request := self._next()) is not None:
            problem: object = None
            try:
                body = request.body()
            except Exception as error:
                logger.exception("what is to be exported cannot be encoded")
                problem = error
            else:
                connection, problem = self._deliver(connection, request, body)
            if problem is None:
                self.sent[request.path] += request.items
            else:
                self._drop(request, problem)
        if connection is not None:
            connection.close()

    def _next(self) -> _Request | None:
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            return self._waiting.popleft()

    def _deliver(
        self, connection: HTTPConnection | None, request: _Request, body: bytes
    ) -> tuple[HTTPConnection | None, object]:
        """The connection, if it can be used again, and what is wrong."""
        problem: object = None
        for pause in (*_PAUSES_SECONDS, None):
            asked: float | None = None
            if connection is None:
                connection = self._connect()
            try:
                connection.request("POST", self._path + request.path, body, self._headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, HTTPException, ValueError) as error:
                connection.close()
                connection, problem = None, error
            else:
                if 200 <= answer.status < 300:
                    return connection, None
                problem = f"it answered with status {answer.status}"
                if answer.status not in _TRY_AGAIN:
                    return connection, problem
                wanted = answer.headers.get("Retry-After", "")
                asked = float(wanted) if wanted.isdecimal() else None
            if pause is None or not self._pause(pause if asked is None else asked):
                break
        return connection, problem

    def _connect(self) -> HTTPConnection:
        make = HTTPSConnection if self._tls else HTTPConnection
        return make(self._host, self._port, timeout=_TIMEOUT_SECONDS)

    def _pause(self, seconds: float) -> bool:
        """Whether there is time for another attempt."""
        ends = monotonic() + min(seconds, _LONGEST_PAUSE_SECONDS)
        with self._changed:
            while (left := ends - monotonic()) > 0:
                if self._closed and self._ends <= ends:
                    return False
                self._changed.wait(left)
        return True

    def _drop(self, request: _Request, problem: object) -> None:
        with self._changed:
            self.dropped[request.path] += request.items
        if monotonic() - self._told >= _TELL_AGAIN_SECONDS:
            self._told = monotonic()
            logger.warning(
                "%s: %d items are dropped so far: %s", self.endpoint, self.dropped.total(), problem
            )


def open_otlp(settings: Settings) -> OtlpSender:
    return OtlpSender(settings["kbroker.otlp.endpoint"], parsed_headers(settings["kbroker.otlp.headers"]))


def parsed_headers(text: str) -> dict[str, str]:
    """Of kbroker.otlp.headers: name=value, several separated by commas, as OTEL_EXPORTER_OTLP_HEADERS."""
    pairs = (each.partition("=") for each in text.split(",") if each.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
