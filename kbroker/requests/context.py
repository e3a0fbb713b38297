"""What a handler knows about the request besides its body."""

from __future__ import annotations

from typing import Protocol


class Peer(Protocol):
    """The connection a request came over, as far as handlers may see it."""

    client_software: tuple[str, str] | None  # name and version, once ApiVersions told them (KIP-511)

    @property
    def listener(self) -> str: ...
    @property
    def local_address(self) -> tuple[str, int]: ...
    @property
    def peer_host(self) -> str: ...
    @property
    def peer_port(self) -> int: ...


class RequestContext:
    __slots__ = ("api_key", "api_version", "client_id", "correlation_id", "now_ms", "peer")

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
