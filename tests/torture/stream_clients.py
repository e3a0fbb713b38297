"""Clients of streams that are a burden: a process of its own, to be killed.

Some only wait, on WebSockets and for events, for records of a topic where nothing happens. Some read a topic
with much in it, a little at a time or nothing. Some begin a message, or the body of a request, and never end
it. When all are there it says "ready".
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import urlsplit

QUIET, LOUD = "quiet", "loud"
_ANNOUNCED = 16 << 20
_SENT = 256 * 1024
_READ_BYTES = 2048
_PAUSE_SECONDS = 0.1
_AT_ONCE = 50  # that come together
_UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n"
)

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Clients:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 0)
        self._kept: list[object] = []

    async def come(self, count: int, come: Callable[[int], Awaitable[object]]) -> None:
        for first in range(0, count, _AT_ONCE):
            some = range(first, min(first + _AT_ONCE, count))
            self._kept += await asyncio.gather(*(come(number) for number in some))

    async def idle(self, number: int) -> object:
        """Half of them by WebSocket, half for events."""
        stream = await self._open(f"/topics/{QUIET}/stream", websocket=bool(number % 2))
        return asyncio.ensure_future(_read_all(*stream))

    async def slow(self, number: int) -> object:
        """One of four reads nothing."""
        path = f"/topics/{LOUD}/stream?offset=earliest"
        stream = await self._open(path, websocket=bool(number % 2))
        return asyncio.ensure_future(_read_slowly(*stream)) if number % 4 else stream

    async def endless(self, number: int) -> object:
        if number % 2:
            reader, writer = await self._open("/socket", websocket=True)
            writer.write(b"\x81\xff" + _ANNOUNCED.to_bytes(8) + bytes(4))
        else:
            reader, writer = await asyncio.open_connection(*self._address)
            head = (
                f"POST /topics/{QUIET}/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {_ANNOUNCED}\r\n\r\n"
            )
            writer.write(head.encode())
        return asyncio.ensure_future(_drip(reader, writer))

    async def _open(self, path: str, *, websocket: bool) -> Stream:
        reader, writer = await asyncio.open_connection(*self._address, limit=4096)
        upgrade = _UPGRADE.format(b64encode(os.urandom(16)).decode()) if websocket else ""
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith((b"HTTP/1.1 101", b"HTTP/1.1 200")), head
        return reader, writer


async def _read_all(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    while await reader.read(4096):
        pass


async def _read_slowly(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while await reader.read(_READ_BYTES):  # noqa: ASYNC110  # it is slow on purpose
            await asyncio.sleep(_PAUSE_SECONDS)


async def _drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        writer.write(bytes(_SENT))
        while True:
            await writer.drain()
            await asyncio.sleep(1)
            writer.write(b"x")


async def main(url: str, idle: int, slow: int, endless: int) -> None:
    clients = Clients(url)
    await clients.come(idle, clients.idle)
    await clients.come(slow, clients.slow)
    await clients.come(endless, clients.endless)
    print("ready", flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    _most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (_most, _most))
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
