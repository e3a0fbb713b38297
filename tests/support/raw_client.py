"""A blocking client that speaks through kbroker's own codec, one frame at a time."""

from __future__ import annotations

import importlib
import socket
import struct
from typing import Any, Self

from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kbroker.protocol.message import schema_of
from kbroker.requests.apis import BY_KEY


class Closed(Exception):
    """The server closed the connection."""


class RawClient:
    def __init__(self, address: tuple[str, int], timeout: float = 20) -> None:
        self.socket = socket.create_connection(address, timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        self._sent: list[tuple[int, int, int]] = []

    def ask(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive()

    def send(self, request: Any, version: int) -> None:
        self.socket.sendall(self.frame(request, version))

    def send_unanswered(self, request: Any, version: int) -> None:
        """A request that gets no answer: Produce with acks=0."""
        self.send(request, version)
        self._sent.pop()

    def frame(self, request: Any, version: int) -> bytes:
        """The whole frame of a request; its answer is then expected by ``receive``."""
        self._correlation_id += 1
        key = schema_of(type(request)).api_key
        assert key is not None
        self._sent.append((key, version, self._correlation_id))
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id="raw",
        )
        body = encode_bytes(header, request_header_version(key, version)) + encode_bytes(request, version)
        return struct.pack(">i", len(body)) + body

    def receive(self) -> Any:
        """The answer to the oldest request that has none yet."""
        key, version, correlation_id = self._sent.pop(0)
        (size,) = struct.unpack(">i", self.take(4))
        frame = memoryview(self.take(size))
        header, position = decode(ResponseHeader, response_header_version(key, version), frame)
        assert header.correlation_id == correlation_id
        api = BY_KEY[key]
        messages = importlib.import_module(f"kbroker.protocol.messages.{api.module}")
        response, end = decode(getattr(messages, f"{api.name}Response"), version, frame, position)
        assert end == size
        return response

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self.socket.recv(size - len(data))
            except ConnectionResetError as error:
                raise Closed from error
            if not part:
                raise Closed
            data += part
        return bytes(data)
