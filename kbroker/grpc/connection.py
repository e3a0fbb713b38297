"""One gRPC connection: admitted, counted, limited and drained as one of HTTP is; another one speaks on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kbroker.config.listeners import GRPC, GRPC_NAME
from kbroker.http.connection import HttpConnection, HttpHost, Speakers

if TYPE_CHECKING:
    from kbroker.pending import Pending


class GrpcHost(HttpHost, Protocol):
    """What a connection needs of the server."""

    def speakers(self, name: str = ...) -> Pending[Speakers]:
        """Those of the process, once they are loaded."""


class GrpcConnection(HttpConnection):
    protocol = GRPC

    def __init__(
        self, host: GrpcHost, listener: str, *, secure: bool = False, asks_for_logins: bool = False
    ) -> None:
        super().__init__(host, listener, secure=secure, asks_for_logins=asks_for_logins)
        self._grpc_host = host

    def _begin(self) -> None:
        self._grpc_host.speakers(GRPC_NAME).then(self._loaded)
