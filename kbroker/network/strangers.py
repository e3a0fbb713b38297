"""Connections that have not logged in yet: how many there may be, and how long.

A stranger may hold a connection for kbroker.login.timeout.ms, whatever it sends meanwhile. Where there are
too many, the oldest of the address that has most of them go: who floods the broker from one address shuts
out itself before others.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.config.settings import Settings
    from kbroker.network.connections import ClientConnection


class Strangers:
    def __init__(self, settings: Settings, room: int) -> None:
        """``room``: how many connections there may be in all; strangers get half of it at most."""
        self._settings = settings
        self._room = max(room // 2, 1)
        self._since: dict[ClientConnection, int] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._since)

    def add(self, connection: ClientConnection, now_ms: int) -> None:
        self._since[connection] = now_ms
        most = min(self._settings["kbroker.max.unauthenticated.connections"], self._room)
        if len(self._since) > most:
            self._forget_known()
        if len(self._since) > most:
            self._evict(max(most // 20, 1))

    def forget(self, connection: ClientConnection) -> None:
        self._since.pop(connection, None)

    def close_late(self, now_ms: int) -> None:
        """To be called once a second."""
        self._forget_known()
        began_ms = now_ms - self._settings["kbroker.login.timeout.ms"]
        for connection, since_ms in list(self._since.items()):
            if since_ms > began_ms:
                break
            del self._since[connection]
            connection.abort()

    def _forget_known(self) -> None:
        self._since = {each: since for each, since in self._since.items() if not each.authenticated}

    def _evict(self, count: int) -> None:
        """Several at a time: to look for them takes longer than to close one."""
        ((host, _),) = Counter(connection.peer_host for connection in self._since).most_common(1)
        oldest = [connection for connection in self._since if connection.peer_host == host][:count]
        for connection in oldest:
            del self._since[connection]
            connection.abort()
