"""A small blocking client on kbroker's own codec, for what must be quick or what kafka-python cannot ask.

Without logins: those are ``wire_session``'s.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any, Self

from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kbroker.protocol.message import schema_of

if TYPE_CHECKING:
    import ssl

_LENGTH = struct.Struct(">i")
_LARGEST_ANSWER = 100 << 20


class WireError(OSError):
    """The peer does not speak Kafka, or stopped."""


class WireClient:
    def __init__(self, address: tuple[str, int], timeout: float, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(address, timeout=timeout)
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname=address[0])
            except OSError:
                self._socket.close()
                raise
        self._correlation_id = 0

    def ask(self, request: Any, version: int, response_type: type[Any]) -> Any:
        key = schema_of(type(request)).api_key
        assert key is not None
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id="kbroker-cli",
        )
        body = encode_bytes(header, request_header_version(key, version)) + encode_bytes(request, version)
        self._socket.sendall(_LENGTH.pack(len(body)) + body)
        (size,) = _LENGTH.unpack(self._take(4))
        if not 4 <= size <= _LARGEST_ANSWER:
            raise WireError("the answer is not Kafka's")
        frame = memoryview(self._take(size))
        try:
            head, position = decode(ResponseHeader, response_header_version(key, version), frame)
            response, _ = decode(response_type, version, frame, position)
        except ValueError as error:
            raise WireError(f"the answer is not Kafka's: {error}") from error
        if head.correlation_id != self._correlation_id:
            raise WireError("the answer is to another request")
        return response

    def newest_version(self, request_type: type[Any]) -> int:
        """Of an API, as far as both sides know it."""
        from kbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

        schema = schema_of(request_type)
        oldest, newest = schema.versions
        for api in self.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).api_keys:
            if api.api_key == schema.api_key:
                return max(oldest, min(newest, int(api.max_version)))
        return oldest

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise WireError("the connection was closed before the answer")
            data += part
        return bytes(data)
