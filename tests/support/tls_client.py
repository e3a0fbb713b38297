"""A raw client over TLS that keeps what really went over the socket."""

from __future__ import annotations

import socket
import ssl

from tests.support.raw_client import Closed, RawClient


class TlsSocket:
    """The part of a socket that RawClient uses, encrypted here: every byte from the server is kept."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self.plain = plain
        self.received = bytearray()
        self._inbound, self._outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.object = context.wrap_bio(self._inbound, self._outbound, server_hostname=host)
        while True:
            try:
                self.object.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._more()
            else:
                break
        self._flush()

    def setsockopt(self, *_: int) -> None:
        pass

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.object.write(view) :]
            self._flush()

    def recv(self, size: int) -> bytes:
        while True:
            try:
                return self.object.read(size)
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLWantReadError:
                self._flush()
                if not self._more():
                    raise Closed from None

    def say_goodbye(self) -> None:
        """close_notify, while the socket stays open for answers."""
        try:
            self.object.unwrap()
        except ssl.SSLWantReadError:
            self._flush()

    def close(self) -> None:
        self.plain.close()

    def _flush(self) -> None:
        if self._outbound.pending:
            self.plain.sendall(self._outbound.read())

    def _more(self) -> bool:
        data = self.plain.recv(65536)
        self.received += data
        if not data:
            if not self.object.version():
                raise Closed
            self._inbound.write_eof()
            return False
        self._inbound.write(data)
        return True


class TlsClient(RawClient):
    def __init__(self, address: tuple[str, int], context: ssl.SSLContext, timeout: float = 20) -> None:
        super().__init__(address, timeout)
        try:
            self.tls = TlsSocket(self.socket, context, "localhost")
        except BaseException:
            self.socket.close()
            raise
        self.socket = self.tls  # type: ignore[assignment]
