"""What is loaded with the first HTTP connection of a process, given what it needs of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from kbroker.http.application import Application
from kbroker.http.problems import Problem
from kbroker.http.speaking import HttpSpeaker, Speaking
from kbroker.http.table import endpoints
from kbroker.pending import Pending, after

if TYPE_CHECKING:
    from kbroker.authentication.logins import ListenerLogins
    from kbroker.broker import Broker
    from kbroker.config.listeners import Listener
    from kbroker.http.connection import HttpConnection
    from kbroker.http.endpoint import Endpoint
    from kbroker.http.upgrading import WebSockets

_SWEEP_SECONDS = 1


class Http:
    """All that speaks HTTP in a broker (connection.py: Speakers)."""

    def __init__(
        self,
        broker: Broker,
        logins: ListenerLogins | None,
        served: Iterable[tuple[str, Endpoint]],
        listener: Listener | None,
    ) -> None:
        settings = broker.settings
        self._broker = broker
        self._settings = settings
        self.application = Application(broker, logins, served, listener)
        self._speaking = Speaking(
            self.application.serve, self._upgrade, broker.budget, settings["kbroker.http.max.header.bytes"]
        )
        self._websockets: Pending[WebSockets] | None = None
        self._open: set[HttpConnection] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    def speaker(self, connection: HttpConnection) -> HttpSpeaker:
        self._open.add(connection)
        if self._sweeping is None:
            self._sweep()
        return HttpSpeaker(self._speaking, connection)

    def ended(self, connection: HttpConnection) -> None:
        self._open.discard(connection)

    def _upgrade(self, connection: HttpConnection, received: bytes) -> None:
        """To WebSocket, which is loaded in a thread with the first one."""
        if self._websockets is None:
            loaded = self._broker.worker.run(lambda: import_module("kbroker.http.upgrading"))
            most: int = self._settings["kbroker.http.max.request.bytes"]
            self._websockets = after(loaded, lambda upgrading: upgrading.WebSockets(self.application, most))

        def take_over(opened: Pending[WebSockets]) -> None:
            if opened.succeeded:
                opened.result().take_over(connection, received)
            else:
                connection.abort()

        self._websockets.then(take_over)

    def _sweep(self) -> None:
        """Who has not said what they want in time is closed, and who wants nothing for long."""
        limit_ms: int = self._settings["kbroker.http.request.timeout.ms"]
        idle_ms: int = self._settings["kbroker.http.keep.alive.ms"]
        now_ms = self._broker.clock()
        for connection in list(self._open):
            since = connection.head_since
            if since is not None and now_ms - since > limit_ms:
                what = "The message did not come" if connection.upgraded else "No request came"
                connection.refuse(
                    Problem(408, f"{what} within {limit_ms} ms (kbroker.http.request.timeout.ms).")
                )
            elif since is None and not connection.busy and now_ms - connection.last_active > idle_ms:
                connection.close()
        self._sweeping = (
            asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep) if self._open else None
        )


def opened(broker: Broker, logins: ListenerLogins | None) -> Http:
    return Http(broker, logins, endpoints(), broker.settings.http_listener("0"))
