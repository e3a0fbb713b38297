"""What a handler knows about the request besides its body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.requests.apis import BY_KEY
from kbroker.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbroker.quotas.throttling import RequestThrottle


class Peer:
    """The client at the other end of a connection, as far as handlers may see it."""

    __slots__ = (
        "_on_close",
        "client_software",
        "connection",
        "listener",
        "local_address",
        "peer_host",
        "peer_port",
        "principal",
        "takes_files",
    )

    security_protocol = "PLAINTEXT"
    by_token = False
    """Whether it logged in with a delegation token."""

    def __init__(self, listener: str, local_address: tuple[str, int], peer_address: tuple[str, int]) -> None:
        self.listener = listener
        self.local_address = local_address  # at which this very connection reached us
        self.peer_host, self.peer_port = peer_address
        self.connection = 0  # its number in the log
        self.principal: Principal = ANONYMOUS
        self.takes_files = True  # the kernel may send it parts of files: nothing encrypts what it gets
        self.client_software: tuple[str, str] | None = None  # name and version, told by ApiVersions (KIP-511)
        self._on_close: list[Callable[[], None]] | None = None

    def on_close(self, callback: Callable[[], None]) -> None:
        """Called once, when the connection is gone."""
        if self._on_close is None:
            self._on_close = []
        self._on_close.append(callback)

    def closed(self) -> None:
        """The connection is gone."""
        callbacks, self._on_close = self._on_close, None
        for callback in callbacks or ():
            callback()


class RequestContext:
    __slots__ = ("api_key", "api_version", "client_id", "correlation_id", "now_ms", "peer", "throttle")

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        now_ms: int,
        peer: Peer,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.now_ms = now_ms
        self.peer = peer
        self.throttle: RequestThrottle | None = None  # of a client that has quotas

    @property
    def principal(self) -> Principal:
        """Who asks."""
        return self.peer.principal

    @property
    def api_name(self) -> str:
        return BY_KEY[self.api_key].name

    @property
    def listener(self) -> str:
        return self.peer.listener

    @property
    def local_address(self) -> tuple[str, int]:
        """The address at which this very connection reached us."""
        return self.peer.local_address

    @property
    def peer_host(self) -> str:
        return self.peer.peer_host
