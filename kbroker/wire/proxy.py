"""A proxy between clients and the brokers of a cluster that tells what they say to each other.

Bytes go on as they arrive and as they came, except the addresses of brokers: clients are told one of the
proxy's own ports for each, opened when a broker is first heard of. A side that does not read holds up the
other, so that nothing piles up here. When one side closes for writing, so does the proxy towards the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Final

from kbroker.wire.addresses import HELD_APIS, Address, rewrite
from kbroker.wire.connection import Connection, Event

_CHUNK_BYTES: Final = 256 << 10
_CONNECT_SECONDS: Final = 10
_NEARBY_PORTS: Final = 100
_WAITING_CHUNKS: Final = 64  # that have gone on and are not explained yet; then their connections wait

Tell = Callable[[Event], None]


class Proxy:
    def __init__(
        self,
        upstream: Address,
        listen: Address,
        tell: Tell,
        *,
        rewrites: bool = True,
        advertise: str | None = None,
    ) -> None:
        """`advertise`: the host that clients are told; else the one at which they reached the proxy."""
        self._upstream = upstream
        self._listen = listen
        self._tell = tell
        self._rewrites = rewrites
        self._advertise = advertise
        self._ports: dict[Address, int] = {}  # of brokers: where the proxy listens for them
        self._servers: list[asyncio.Server] = []
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived: asyncio.Queue[Connection] = asyncio.Queue(_WAITING_CHUNKS)
        self.address = listen

    async def start(self) -> None:
        """Listen; `address` then has the port. An OSError tells why that cannot be."""
        listener = _listener(self._listen)
        self.address = self._listen[0], listener.getsockname()[1]
        self._ports[self._upstream] = self.address[1]
        await self._serve(listener, self._upstream)
        self._start(self._explain())

    async def stop(self) -> None:
        """Close everything, and tell what is still to be told."""
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while not self._arrived.empty():
            for event in self._arrived.get_nowait().events():
                self._tell(event)

    async def _serve(self, listener: socket.socket, broker: Address) -> None:
        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._start(self._connect(reader, writer, broker))

        self._servers.append(await asyncio.start_server(accepted, sock=listener, limit=_CHUNK_BYTES))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _local(self, broker: Address, host: str, number: int) -> Address:
        """Where clients that reached the proxy at `host` find a broker."""
        port = self._ports.get(broker)
        if port is None:
            listener = self._another_listener()
            port = self._ports[broker] = listener.getsockname()[1]
            self._start(self._serve(listener, broker))
            self._remark(number, f"broker {_text(broker)} is reached through {_text((host, port))}")
        return host, port

    def _another_listener(self) -> socket.socket:
        """At a port close to the first, if there is one: firewalls and containers open ranges."""
        host, first = self.address
        if self._listen[1]:
            for port in range(first + 1, min(first + 1 + _NEARBY_PORTS, 65536)):
                with contextlib.suppress(OSError):
                    return _listener((host, port))
        return _listener((host, 0))

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, broker: Address
    ) -> None:
        number = next(self._numbers)
        client: Address = writer.get_extra_info("peername")[:2]
        reached: str = self._advertise or writer.get_extra_info("sockname")[0]

        def rewritten(api_key: int, version: int, frame: bytes) -> bytes:
            return rewrite(api_key, version, frame, lambda found: self._local(found, reached, number))

        connection = Connection(number, rewritten, HELD_APIS) if self._rewrites else Connection(number)
        self._remark(number, f"{_text(client)} connects to {_text(broker)}", routine=True)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                upstream_reader, upstream = await asyncio.open_connection(*broker, limit=_CHUNK_BYTES)
        except OSError as error:
            self._remark(
                number,
                f"{_text(broker)} cannot be reached: {error.strerror or str(error) or 'no answer in time'}",
            )
            await _close(writer)
            return
        try:
            await self._forward(connection, (reader, writer), (upstream_reader, upstream))
        finally:
            await _close(upstream)
            await _close(writer)
            for event in connection.events():
                self._tell(event)
            self._remark(number, f"{_text(client)} is closed", routine=True)

    async def _forward(
        self,
        connection: Connection,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        broker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Until both sides have closed, or one has broken off."""
        tasks = [
            asyncio.ensure_future(self._to_broker(connection, client[0], broker[1])),
            asyncio.ensure_future(self._to_client(connection, broker[0], client[1])),
        ]
        try:
            await asyncio.gather(*tasks)
        except OSError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _to_broker(
        self, connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            connection.from_client(data, time.time())
            await self._arrived.put(connection)
            await writer.drain()
        writer.write_eof()

    async def _to_client(
        self, connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            writer.writelines(connection.from_broker(data, time.time()))
            await self._arrived.put(connection)
            await writer.drain()
        writer.write(connection.rest_for_client())
        writer.write_eof()

    async def _explain(self) -> None:
        """One frame at a time: bytes that arrive meanwhile wait for that one, not for all."""
        while True:
            connection = await self._arrived.get()
            try:
                for event in connection.events():
                    self._tell(event)
                    await asyncio.sleep(0)
            except Exception as error:  # a mistake here must not hold up the bytes of anybody
                self._remark(connection.number, f"a frame could not be explained: {type(error).__name__}")

    def _remark(self, number: int, text: str, *, routine: bool = False) -> None:
        self._tell(Event(number, time.time(), None, remark=text, routine=routine))


def _listener(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    return socket.create_server(address, family=family, backlog=128)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _text(address: Address) -> str:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"{host}:{address[1]}"
