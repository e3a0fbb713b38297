"""The service manager that started the process, told how it goes: systemd's protocol (sd_notify), which is
lines in a datagram to the socket that NOTIFY_SOCKET names.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Mapping

SOCKET = "NOTIFY_SOCKET"

logger = logging.getLogger("kbroker.server")


class ServiceManager:
    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ[SOCKET]
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._watchdog_seconds = _watchdog_seconds(environ)
        self._next_sign: asyncio.TimerHandle | None = None

    def ready(self, status: str) -> None:
        """It serves; and gives signs of life from now on, if it is watched."""
        self._tell("READY=1", f"STATUS={status}")
        if self._watchdog_seconds is not None:
            self._give_sign()

    def stopping(self, status: str) -> None:
        self._tell("STOPPING=1", f"STATUS={status}")

    def close(self) -> None:
        if self._next_sign is not None:
            self._next_sign.cancel()
        self._socket.close()

    def _give_sign(self) -> None:
        """From the loop, so that one that hangs gives none."""
        assert self._watchdog_seconds is not None
        self._tell("WATCHDOG=1")
        loop = asyncio.get_running_loop()
        self._next_sign = loop.call_later(self._watchdog_seconds / 2, self._give_sign)

    def _tell(self, *lines: str) -> None:
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            logger.warning("the service manager cannot be told %s: %s", lines[0], error)


def _watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """Within which it wants a sign of life; None: it wants none, or not from this process."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    if not microseconds.isdecimal() or environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(microseconds) / 1_000_000
