"""The process: sockets, timers, signals, and the order in which things start and stop.

Start: lock and open the data directory, open the catalog, bind the listeners, serve. Stop: refuse new
connections, answer what is executing, flush and close the logs, close the catalog, release the lock.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kbroker.broker import Broker
from kbroker.catalog.errors import CatalogUnreadable
from kbroker.config.listeners import CONTROL, KAFKA, Listener
from kbroker.data_directory import DataDirectoryError, identify, open_data, refused
from kbroker.network.awaiting import settled
from kbroker.network.budget import Budget
from kbroker.network.connection import SCRATCH_BYTES, Connection
from kbroker.network.connection_limits import ConnectionLimits
from kbroker.network.connections import Connections
from kbroker.network.frame_buffers import FrameBuffers
from kbroker.network.freed_memory import FreedMemory
from kbroker.network.threads import ThreadWorker
from kbroker.requests.session import Requests

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog
    from kbroker.config.settings import Settings
    from kbroker.control.port import Control
    from kbroker.network.tls_listeners import TlsListeners
    from kbroker.storage.interface import Directory

logger = logging.getLogger("kbroker.server")

_IO_THREADS = 4
_MIN_TICK_MS = 10


class StartError(Exception):
    """The server cannot start; the message tells the user what to do about it."""


class Clock:
    """The time of the broker, which a test may let jump."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def advance(self, ms: int) -> None:
        self._ahead_ms += ms


class LoopScheduler:
    """The Scheduler on an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """One millisecond more than asked: libuv counts whole ones, and a timer would come too early."""
        return self._loop.call_later((delay_ms + 1) / 1000 if delay_ms else 0, callback).cancel

    def soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)


class Server:
    """One broker on its listeners, inside a running event loop."""

    @classmethod
    async def open(cls, settings: Settings) -> Server:
        """With its logs and its catalog opened; it does not listen yet."""
        worker = ThreadWorker(asyncio.get_running_loop(), _IO_THREADS)
        clock = Clock()
        logs, catalog = await settled(open_data(settings, worker, clock.now_ms()))
        return cls(settings, logs, catalog, worker, clock)

    def __init__(
        self, settings: Settings, logs: Directory, catalog: Catalog, worker: ThreadWorker, clock: Clock
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._logs = logs
        self._catalog = catalog
        self._worker = worker
        self._clock = clock
        self.now_ms = clock.now_ms
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.budget = Budget(settings["queued.max.request.bytes"])
        self.frame_buffers = FrameBuffers()
        self._sockets: list[asyncio.Server] = []
        self.addresses: list[tuple[str, str, int]] = []  # listener, host, port
        limits = ConnectionLimits(settings, worker, logs.descriptors)
        self.connections = Connections(self.budget, limits)
        self._protocols: dict[str, Callable[[Listener], asyncio.BaseProtocol]] = {
            KAFKA: lambda listener: Connection(self, listener.name)
        }
        self._tls: TlsListeners | None = None
        try:
            self.broker = Broker(
                settings,
                catalog,
                logs,
                worker=worker,
                scheduler=LoopScheduler(self._loop),
                budget=self.budget,
                clock=self.now_ms,
            )
            identify(settings, self.broker.cluster.cluster_id)
        except (CatalogUnreadable, DataDirectoryError) as error:
            raise refused(settings, logs, error) from error
        self.requests = Requests(self.broker)
        if any(listener.uses_sasl for listener in settings.listeners):
            from kbroker.authentication.opening import open_logins

            self.requests.logins = open_logins(self.broker)
            self.connections.watch_strangers(settings)
        self.paused = False
        self._control: Control | None = None
        self._catalog.start(self._loop.call_soon_threadsafe)
        self._housekeeping: asyncio.TimerHandle | None = None
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._file_watch: asyncio.TimerHandle | None = None

    def soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    # starting

    async def start(self) -> None:
        for listener in self._settings.listeners:
            await self._listen(listener)
        self._keep_house()
        self._sweep_idle()

    async def _listen(self, listener: Listener) -> int:
        """Accept connections; returns the port."""
        make = self._protocols[listener.protocol]
        if listener.uses_tls:
            make = self._with_tls(listener)
        try:
            server = await self._loop.create_server(
                lambda: make(listener),
                listener.host or None,
                listener.port,
                backlog=self._settings["socket.listen.backlog.size"],
                reuse_address=True,
                start_serving=False,
            )
            for bound in server.sockets:
                self._size_buffers(bound)
            await server.start_serving()
        except OSError as error:
            raise StartError(_cannot_listen(listener, error)) from error
        self._sockets.append(server)
        for bound in server.sockets:
            host, port = bound.getsockname()[:2]
            if listener.protocol == KAFKA:
                self.addresses.append((listener.name, host, port))
        return int(port)

    def _with_tls(self, listener: Listener) -> Callable[[Listener], asyncio.BaseProtocol]:
        from kbroker.network.tls import TlsStream
        from kbroker.network.tls_listeners import TlsListeners
        from kbroker.security.tls.errors import TlsError

        if self._tls is None:
            self._tls = TlsListeners(self._settings, self._worker, self.budget)
            self.broker.dynamic_configs.reconfigurables.append(self._tls)
            self._look_at_files()
        try:
            source = self._tls.open(listener)
        except TlsError as error:
            raise StartError(str(error)) from None
        return lambda listener: TlsStream(Connection(self, listener.name), source)

    def _look_at_files(self) -> None:
        from kbroker.network.tls_listeners import CHECK_FILES_SECONDS

        if self._tls is not None:
            self._tls.look_at_files()
            self._file_watch = self._loop.call_later(CHECK_FILES_SECONDS, self._look_at_files)

    @property
    def has_files_to_reload(self) -> bool:
        return self._tls is not None

    def reload(self) -> None:
        """Read files again that are kept in memory: keys and certificates."""
        if self._tls is not None:
            self._tls.reload()

    def _size_buffers(self, bound: socket.socket) -> None:
        """Before it listens: the sockets that it accepts inherit the sizes, and offer windows to match."""
        for option, size_bytes in (
            (socket.SO_RCVBUF, self._settings["socket.receive.buffer.bytes"]),
            (socket.SO_SNDBUF, self._settings["socket.send.buffer.bytes"]),
        ):
            # A size that is set once is no longer adapted by the system to what the connection needs.
            if size_bytes > 0:
                bound.setsockopt(socket.SOL_SOCKET, option, size_bytes)

    def _sweep_idle(self) -> None:
        limit_ms = self._settings["connections.max.idle.ms"]
        if limit_ms >= 0:
            self.connections.close_idle(self.now_ms(), limit_ms)
        pause = min(max(limit_ms / 10, 100), 10_000) / 1000 if limit_ms >= 0 else 10
        self._idle_sweep = self._loop.call_later(pause, self._sweep_idle)

    # what tests do to it

    async def open_control_port(self, port: int) -> int:
        """Let tests inject faults; returns the port."""
        from kbroker.control.faults import Faults
        from kbroker.control.port import Control, ControlConnection

        faults = self.requests.gate = Faults(self.broker.scheduler)
        control = self._control = Control(self, faults)
        self._protocols[CONTROL] = lambda _: ControlConnection(control, self.connections)
        return await self._listen(Listener("CONTROL", "127.0.0.1", port, CONTROL))

    async def control(self, action: str, **arguments: Any) -> Any:
        """What the control port would do."""
        if self._control is None:
            raise RuntimeError("the control port is not open")
        return await self._control.do(action, **arguments)

    def connection_count(self) -> int:
        return len(self.connections.of(KAFKA))

    def drop_connections(self) -> int:
        """Reset every connection; returns how many there were."""
        dropped = self.connections.of(KAFKA)
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def pause(self) -> None:
        """Execute nothing until resumed: a broker that hangs."""
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        for connection in self.connections.of(KAFKA):
            connection.resume()

    def advance_time(self, ms: int) -> None:
        """Let the broker's clock jump: sessions, rebalances, retention and transactions time out."""
        self._clock.advance(ms)
        self.broker.time_jumped()
        self._logs.tick(self.now_ms())

    # upkeep

    def _keep_house(self) -> None:
        now_ms = self.now_ms()
        try:
            self._logs.tick(now_ms)
        except Exception:
            logger.exception("housekeeping failed")
        self.connections.close_stalled(now_ms)
        self.connections.close_late_strangers(now_ms)
        pause_ms = min(max(self._logs.next_deadline() - now_ms, _MIN_TICK_MS), 1000)
        self._housekeeping = self._loop.call_later(pause_ms / 1000, self._keep_house)

    # stopping

    async def stop(self) -> None:
        for server in self._sockets:
            server.close()
        await self.connections.drain()
        for timer in (self._housekeeping, self._idle_sweep, self._file_watch):
            if timer is not None:
                timer.cancel()
        self.broker.close()
        if self.broker.audit is not None:
            await settled(self.broker.audit.close())
        await self._loop.run_in_executor(None, self._catalog.close)
        self._logs.close()
        self._worker.stop()


def _cannot_listen(listener: Listener, error: OSError) -> str:
    where = f"{listener.host}:{listener.port}"
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {where}: the host name is not known"
    if error.errno == 98:
        return (
            f"cannot listen on {where}: the port is in use. Stop the program that has it, "
            "or choose another one with --port (0 picks a free one)"
        )
    if error.errno == 13:
        return f"cannot listen on {where}: ports below 1024 need privileges; choose another one with --port"
    return f"cannot listen on {where}: {error.strerror or error}"


def _watch_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop when standard input ends: the parent holds its other side until it dies."""

    def read_to_the_end() -> None:
        while os.read(0, 1024):
            pass
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=read_to_the_end, name="parent", daemon=True).start()


def _give_back_memory(server: Server, freed: FreedMemory) -> None:
    """Every few seconds: what a load that has ended held; one that goes on gets its memory anew."""
    server.frame_buffers.let_go_unused()
    if freed.is_worth_it:
        freed.give_back()
    asyncio.get_running_loop().call_later(freed.pause_seconds, _give_back_memory, server, freed)


async def serve(
    settings: Settings, ready: Callable[[Server], Awaitable[None]], *, with_parent: bool = False
) -> None:
    """Run a server until SIGTERM or SIGINT; ``with_parent``: also until standard input closes."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    freed = FreedMemory()
    freed.keep()
    server = await Server.open(settings)
    await server.start()
    if server.has_files_to_reload:
        loop.add_signal_handler(signal.SIGHUP, server.reload)
    _give_back_memory(server, freed)
    if with_parent:
        _watch_parent(loop, stop)
    await ready(server)
    await stop.wait()
    logger.info("stopping")
    await server.stop()
