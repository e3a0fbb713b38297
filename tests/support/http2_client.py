"""HTTP/2 spoken frame by frame, also as nobody should."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from kbroker.grpc.framing import PREFIX

CONTENT_TYPE = ("content-type", "application/grpc")


class Http2Client:
    """`h2` makes frames, or `socket` takes any bytes; `wait_for` looks through what comes."""

    def __init__(self, address: str, *, preface: bool = True) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        self.h2 = H2Connection(H2Configuration(client_side=True))
        self.happened: list[Any] = []
        if preface:
            self.h2.initiate_connection()
            self.flush()

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def call(self, method: str, *messages: Any, end: bool = True, **headers: str) -> int:
        """Begin a call of ours; returns its stream."""
        stream_id = self.h2.get_next_available_stream_id()
        path = method if method.startswith("/") else f"/kbroker.v1.Kbroker/{method}"
        given = {":method": "POST", ":scheme": "http", ":authority": "x", ":path": path, "te": "trailers"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        given.setdefault("content-type", "application/grpc")
        self.h2.send_headers(stream_id, list(given.items()))
        data = b"".join(framed(each) for each in messages)
        self.h2.send_data(stream_id, data, end_stream=end)
        self.flush()
        return stream_id

    def events(self) -> Iterator[Any]:
        """As they come, until the server closes."""
        while True:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return
            if not data:
                return
            found = self.h2.receive_data(data)
            self.happened += found
            yield from found

    def wait_for(self, kind: type[Any], where: Callable[[Any], bool] = lambda event: True) -> Any:
        for event in self.happened:
            if isinstance(event, kind) and where(event):
                return event
        for event in self.events():
            if isinstance(event, kind) and where(event):
                return event
        raise AssertionError(f"closed without {kind.__name__}: {self.happened}")

    def status(self, stream_id: int) -> tuple[int, str]:
        """How the call ended."""

        def ended(event: Any) -> bool:
            return event.stream_id == stream_id and any(name == b"grpc-status" for name, _ in event.headers)

        trailers = self.wait_for(
            (events.TrailersReceived, events.ResponseReceived),  # type: ignore[arg-type]
            ended,
        )
        found = dict(trailers.headers)
        return int(found[b"grpc-status"]), found.get(b"grpc-message", b"").decode()

    def closed_with(self) -> ErrorCodes | None:
        """The code of the GOAWAY before the end; None: there was none. Fails if it does not end."""
        try:
            for _ in self.events():
                pass
        except ProtocolError:  # of frames behind a GOAWAY
            pass
        codes = [each.error_code for each in self.happened if isinstance(each, events.ConnectionTerminated)]
        return codes[-1] if codes else None

    def send_until_closed(self, data: bytes, seconds: float = 30) -> None:
        """Again and again, and read nothing meanwhile."""
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                self.socket.sendall(data)
        except (ConnectionError, TimeoutError):
            return
        raise AssertionError("the server takes all of it")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def framed(message: Any) -> bytes:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return PREFIX.pack(0, len(data)) + data
