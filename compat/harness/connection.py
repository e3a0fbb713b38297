"""One raw connection to a broker: any API at any version, from dictionaries or from bytes."""

from __future__ import annotations

import socket
import ssl
import struct
from types import TracebackType
from typing import Any, Self

from . import wire

CLIENT_ID = "compat"


class ConnectionClosed(ConnectionError):
    """The broker closed the connection instead of answering."""


class Connection:
    """Requests are answered one at a time: `Connection(bootstrap).ask("Metadata", 12, {"Topics": None})`."""

    def __init__(
        self,
        bootstrap: str,
        *,
        timeout: float = 30,
        source_host: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`source_host`: the address that the broker sees, one of this machine's."""
        host, _, port = bootstrap.rpartition(":")
        source = (source_host, 0) if source_host else None
        self._socket = socket.create_connection((host, int(port)), timeout=timeout, source_address=source)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._correlation_id = 0

    def ask(
        self, api_name: str, version: int, values: dict[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Send one request and decode its answer."""
        api = wire.apis()[api_name]
        self.send(api_name, version, {**(values or {}), **more})
        body = self.receive(flexible=version in api.response.flexible and api_name != "ApiVersions")
        return wire.decode(api.response, version, body)

    def send(self, api_name: str, version: int, values: dict[str, Any]) -> int:
        """Send one request without waiting; returns its correlation id."""
        api = wire.apis()[api_name]
        body = wire.encode(api.request, version, values)
        return self.send_body(api.key, version, body, flexible=version in api.request.flexible)

    def send_body(self, api_key: int, version: int, body: bytes, *, flexible: bool) -> int:
        self._correlation_id += 1
        client_id = CLIENT_ID.encode()
        header = struct.pack(">hhih", api_key, version, self._correlation_id, len(client_id)) + client_id
        frame = header + (b"\0" if flexible else b"") + body
        self.send_bytes(struct.pack(">i", len(frame)) + frame)
        return self._correlation_id

    def send_bytes(self, content: bytes) -> None:
        try:
            self._socket.sendall(content)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosed("while sending") from error

    def receive(self, *, flexible: bool) -> bytes:
        """The body of the next answer; `flexible` if its header has tagged fields."""
        reader = wire.Reader(self.receive_frame())
        correlation_id = reader.fixed("i")
        if correlation_id != self._correlation_id:
            raise ValueError(f"answer to {correlation_id}, expected one to {self._correlation_id}")
        if flexible:
            for _ in range(reader.varint()):
                reader.varint()
                reader.take(reader.varint())
        return reader.take(reader.remaining)

    def receive_frame(self) -> bytes:
        """The next frame, correlation id and all, without its length."""
        return self._take(struct.unpack(">i", self._take(4))[0])

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            try:
                part = self._socket.recv(size - len(taken))
            except ConnectionResetError as error:
                raise ConnectionClosed("reset") from error
            if not part:
                raise ConnectionClosed(f"end after {len(taken)} of {size} bytes")
            taken += part
        return bytes(taken)
