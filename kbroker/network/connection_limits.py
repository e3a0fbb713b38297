"""How many connections may be open: in all, from one address, and with the descriptors that there are.

The limits are read at every new connection, so that they may change at run time. Names in
max.connections.per.ip.overrides are looked up when they are first seen; until then, and for names that nobody
knows, the limit for all holds.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kbroker.config.connection_overrides import parse_overrides
from kbroker.pending import Pending
from kbroker.storage.segments.descriptors import process_limit
from kbroker.storage.worker import Worker

if TYPE_CHECKING:
    from kbroker.config.settings import Settings

logger = logging.getLogger("kbroker.connection_limits")


# Neither of logs nor of connections: the catalog and its journals, listeners, pipes, and what is opened for a
# moment by threads and imports.
_OTHER_DESCRIPTORS = 48
_PER_CONNECTION = 2  # its socket, and a second one of the same to send files to (outgoing.py)
_FEWEST = 8
_TELL_AGAIN_MS = 60_000


class ConnectionLimits:
    def __init__(self, settings: Settings, worker: Worker, log_descriptors: int = 0) -> None:
        """`log_descriptors`: how many the logs may use."""
        self._settings = settings
        self._worker = worker
        left = process_limit() - log_descriptors - _OTHER_DESCRIPTORS
        self.room = max(left // _PER_CONNECTION, _FEWEST)
        self._told_ms = -_TELL_AGAIN_MS
        self._open: Counter[str] = Counter()
        self._overrides: dict[str, int] = {}
        self._overrides_text = ""
        self._read_overrides()

    def take(self, host: str) -> str | None:
        """Count a connection from this address; why it may not stay, if so."""
        self._open[host] += 1
        if self._open.total() > self._settings["max.connections"]:
            return "max.connections is reached"
        self._read_overrides()
        if self._open[host] > self._overrides.get(host, self._settings["max.connections.per.ip"]):
            return "max.connections.per.ip is reached"
        return None

    def no_room(self, now_ms: int) -> bool:
        """Whether a connection must go at once, so that there are descriptors for all else."""
        if self._open.total() <= self.room:
            return False
        if now_ms - self._told_ms >= _TELL_AGAIN_MS:
            self._told_ms = now_ms
            logger.warning(
                "%d connections are open; more connections are closed at once, for there are no file "
                "descriptors for them (ulimit -n is %d)",
                self.room,
                process_limit(),
            )
        return True

    def give_back(self, host: str) -> None:
        self._open[host] -= 1
        if not self._open[host]:
            del self._open[host]

    def _read_overrides(self) -> None:
        text = self._settings["max.connections.per.ip.overrides"]
        if text == self._overrides_text:
            return
        self._overrides_text = text
        self._overrides = {}
        names: dict[str, int] = {}
        for host, limit in parse_overrides(text).items():
            address = _as_address(host)
            if address is None:
                names[host] = limit
            else:
                self._overrides[address] = limit

        def found(lookup: Pending[dict[str, int]]) -> None:
            if self._overrides_text == text:
                self._overrides = lookup.result() | self._overrides

        if names:
            self._worker.run(lambda: _look_up(names)).then(found)


def _as_address(host: str) -> str | None:
    """An address as the system writes it; None for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return socket.inet_ntop(family, socket.inet_pton(family, host))
        except OSError:
            continue
    return None


def _look_up(names: Mapping[str, int]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for name, limit in names.items():
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError as error:
            logger.warning("max.connections.per.ip.overrides: %s is not known: %s", name, error)
        else:
            limits.update((str(address[0]), limit) for *_, address in found)
    return limits
