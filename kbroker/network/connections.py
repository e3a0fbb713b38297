"""All connections of a server, whatever they speak: how many there may be, which are idle, how they end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Protocol

from kbroker.network.stalled_peers import StalledPeers

if TYPE_CHECKING:
    from kbroker.config.settings import Settings
    from kbroker.network.budget import Budget
    from kbroker.network.connection_limits import ConnectionLimits
    from kbroker.network.strangers import Strangers
    from kbroker.requests.traffic import Traffic

logger = logging.getLogger("kbroker.connections")

_DRAIN_SECONDS = 10


class ClientConnection(Protocol):
    """What a server needs of a connection."""

    protocol: str  # of its listener
    listener: str  # its name
    limited: bool  # counts against max.connections and its kind
    peer_host: str
    last_active: int  # milliseconds
    number: int  # by which the log tells connections apart

    @property
    def authenticated(self) -> bool:
        """Whether it is known who is at the other end, as far as the listener asks."""

    @property
    def progress(self) -> int | None:
        """How many bytes of what it holds of the budget the peer has sent or taken; None: it holds none."""

    def idle_since(self, now_ms: int) -> int | None:
        """When something last came from the peer or went to it; None while it waits for us."""

    def give_up(self, reason: str) -> None:
        """Close at once, whatever the peer has not taken yet, and say so in the log."""

    def abort(self) -> None: ...

    def drain(self, on_drained: Callable[[], None]) -> None:
        """Take no more requests, answer those that are executing, close, then call back."""

    def resume(self) -> None:
        """The server was paused and goes on."""


class Connections:
    def __init__(self, budget: Budget, limits: ConnectionLimits, traffic: Traffic) -> None:
        self._traffic = traffic
        self._open: set[ClientConnection] = set()
        self._numbers = count(1)
        self._limits = limits
        self._stalled_peers = StalledPeers(budget)
        self._strangers: Strangers | None = None  # where no listener asks who comes, there are none

    def of(self, protocol: str) -> list[ClientConnection]:
        """Those of listeners with this protocol."""
        return [connection for connection in self._open if connection.protocol == protocol]

    def admit(self, connection: ClientConnection) -> str | None:
        """Take in a connection, or say why not."""
        refusal = self._admit(connection)
        traffic = self._traffic.listeners[connection.listener]
        traffic.came += 1
        if refusal is not None:
            traffic.refused += 1
        return refusal

    def _admit(self, connection: ClientConnection) -> str | None:
        self._open.add(connection)
        connection.number = next(self._numbers)
        if self._strangers is not None and not connection.authenticated:
            self._strangers.add(connection, connection.last_active)
        if not connection.limited:
            return None
        refusal = self._limits.take(connection.peer_host)
        if self._limits.no_room(connection.last_active):
            connection.abort()
            return None
        return refusal

    def forget(self, connection: ClientConnection) -> None:
        if connection in self._open:
            self._open.discard(connection)
            self._traffic.listeners[connection.listener].went += 1
            if self._strangers is not None:
                self._strangers.forget(connection)
            if connection.limited:
                self._limits.give_back(connection.peer_host)

    def close_idle(self, now_ms: int, limit_ms: int) -> None:
        for connection in list(self._open):
            since = connection.idle_since(now_ms)
            if since is not None and since < now_ms - limit_ms:
                extra = {"connection": connection.number, "peer": connection.peer_host}
                logger.debug("closing %s: idle for %d ms", connection.peer_host, limit_ms, extra=extra)
                connection.abort()

    def watch_strangers(self, settings: Settings) -> None:
        """Bound what clients may hold before they log in."""
        from kbroker.network.strangers import Strangers

        self._strangers = Strangers(settings, self._limits.room)

    def close_late_strangers(self, now_ms: int) -> None:
        """To be called once a second."""
        if self._strangers is not None:
            self._strangers.close_late(now_ms)

    def close_stalled(self, now_ms: int) -> None:
        """To be called once a second."""
        for connection in self._stalled_peers.find(self._open, now_ms):
            connection.give_up("it makes no progress with bytes that others wait for")

    async def drain(self) -> None:
        """Let all end what they do; those that take too long are closed."""
        drained = asyncio.Event()
        left = len(self._open)
        if not left:
            return

        def one_less() -> None:
            nonlocal left
            left -= 1
            if not left:
                drained.set()

        for connection in list(self._open):
            connection.drain(one_less)
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                await drained.wait()
        except TimeoutError:
            for connection in list(self._open):
                connection.abort()
