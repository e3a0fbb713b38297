"""The process: sockets, timers, signals, and the order in which things start and stop.

Start: open the broker, bind the listeners, serve. Stop: drain where that is set, refuse new connections,
answer what is executing, close the broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kbroker.config.listeners import (
    CONTROL,
    GRPC,
    GRPC_NAME,
    HTTP,
    HTTP_NAME,
    KAFKA,
    METRICS,
    METRICS_NAME,
    Listener,
    is_loopback,
)
from kbroker.network.connection import SCRATCH_BYTES, Connection
from kbroker.network.connection_limits import ConnectionLimits
from kbroker.network.connections import Connections
from kbroker.network.frame_buffers import FrameBuffers
from kbroker.network.freed_memory import FreedMemory
from kbroker.pending import after
from kbroker.requests.session import Requests
from kbroker.running_broker import RunningBroker

if TYPE_CHECKING:
    from kbroker.config.settings import Settings
    from kbroker.control.port import Control
    from kbroker.grpc.connection import GrpcConnection
    from kbroker.http.connection import HttpConnection, Speakers
    from kbroker.network.service_manager import ServiceManager
    from kbroker.network.tls_listeners import TlsListeners
    from kbroker.pending import Pending

logger = logging.getLogger("kbroker.server")


class StartError(Exception):
    """The server cannot start; the message tells the user what to do about it."""


class Server:
    """One broker on its listeners, inside a running event loop."""

    @classmethod
    async def open(cls, settings: Settings) -> Server:
        """With its logs and its catalog opened; it does not listen yet."""
        return cls(await RunningBroker.open(settings))

    def __init__(self, running: RunningBroker) -> None:
        self._running = running
        self._loop = running.loop
        self._settings = running.settings
        self.broker = running.broker
        self.now_ms = running.now_ms
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.budget = running.budget
        self.frame_buffers = FrameBuffers()
        self._sockets: list[asyncio.Server] = []
        self.addresses: list[tuple[str, str, int]] = []  # listener, host, port
        limits = ConnectionLimits(self._settings, running.worker, running.logs.descriptors)
        self.connections = Connections(self.budget, limits, self.broker.traffic)
        self._protocols: dict[str, Callable[[Listener], Any]] = {
            KAFKA: lambda listener: Connection(self, listener.name),
            HTTP: self._http_connection,
            GRPC: self._grpc_connection,
            METRICS: self._metrics_connection,
        }
        self.http_address: tuple[str, int] | None = None
        self.grpc_address: tuple[str, int] | None = None
        self.metrics_address: tuple[str, int] | None = None
        self._speakers: dict[str, Pending[Speakers]] = {}
        self._tls: TlsListeners | None = None
        self.requests = Requests(self.broker)
        if any(listener.uses_sasl for listener in self._settings.all_listeners):
            from kbroker.authentication.opening import open_logins

            self.requests.logins = open_logins(self.broker)
            self.connections.watch_strangers(self._settings)
        self.paused = False
        self._control: Control | None = None
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._file_watch: asyncio.TimerHandle | None = None

    def soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    # starting

    async def start(self, listeners: Sequence[Listener | None] | None = None) -> None:
        """``listeners``: those to open; without them, all that the settings name."""
        if listeners is None:
            listeners = (
                *self._settings.listeners,
                self._settings.http_listener(),
                self._settings.grpc_listener(),
                self._settings.metrics_listener(),
            )
        for listener in listeners:
            if listener is not None:
                await self._listen(listener)
        self._running.keep_house(self._look_around)
        self._sweep_idle()

    async def _listen(self, listener: Listener) -> int:
        """Accept connections; returns the port."""
        make = self._protocols[listener.protocol]
        if listener.protocol == GRPC:
            _check_grpc_is_installed()
        if listener.uses_tls:
            make = self._with_tls(listener, make)
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
                self.broker.cluster.ports[listener.name] = port
            elif listener.protocol == HTTP:
                self.http_address = (host, port)
                self._look_who_can_log_in(HTTP_NAME)
            elif listener.protocol == GRPC:
                self.grpc_address = (host, port)
                self._look_who_can_log_in(GRPC_NAME)
            elif listener.protocol == METRICS:
                self.metrics_address = (host, port)
                self._look_who_can_log_in(METRICS_NAME)
        return int(port)

    async def offer_http(self, port: str) -> None:
        """Serve HTTP at a usual port, if nobody has said where, or that it is off. Raises StartError."""
        settings = self._settings
        listener = settings.http_listener(port)
        if listener is None or settings["kbroker.http.port"] is not None:
            return
        if not (is_loopback(listener.host) or settings.asks_who_comes(listener)) and any(
            map(settings.asks_who_comes, settings.listeners)
        ):
            raise StartError(
                "it would let in anybody, and other listeners do not: say with kbroker.http.listener which "
                "one it takes after, or with --http-port that it is wanted"
            )
        await self._listen(listener)

    def _http_connection(self, listener: Listener) -> HttpConnection:
        from kbroker.http.connection import HttpConnection

        return HttpConnection(
            self, listener.name, secure=listener.uses_tls, asks_for_logins=listener.uses_sasl
        )

    def _grpc_connection(self, listener: Listener) -> GrpcConnection:
        from kbroker.grpc.connection import GrpcConnection

        return GrpcConnection(
            self, listener.name, secure=listener.uses_tls, asks_for_logins=listener.uses_sasl
        )

    def _metrics_connection(self, listener: Listener) -> HttpConnection:
        from kbroker.http.metrics_connection import MetricsConnection

        return MetricsConnection(
            self, listener.name, secure=listener.uses_tls, asks_for_logins=listener.uses_sasl
        )

    def _look_who_can_log_in(self, name: str) -> None:
        logins = self.requests.logins.get(name)
        if logins is not None and not logins.takes_credentials:
            logger.warning(
                "nobody can log in by %s: without TLS it takes passwords only where PLAIN is enabled, for "
                "example by listener.name.%s.sasl.enabled.mechanisms",
                {HTTP_NAME: "HTTP", GRPC_NAME: "gRPC", METRICS_NAME: "HTTP, for metrics,"}[name],
                name.lower(),
            )

    def speakers(self, name: str = HTTP_NAME) -> Pending[Speakers]:
        """What speaks HTTP, or gRPC, which is loaded in a thread: others are served meanwhile."""
        speakers = self._speakers.get(name)
        if speakers is None:
            of_metrics = name == METRICS_NAME
            module = "kbroker.http.metrics_opening" if of_metrics else f"kbroker.{name.lower()}.opening"
            loaded = self._running.worker.run(lambda: import_module(module))
            logins = self.requests.logins.get(name)
            speakers = after(loaded, lambda opening: opening.opened(self.broker, logins))
            speakers.then(partial(_tell_failure, name))
            self._speakers[name] = speakers
        return speakers

    @property
    def all_addresses(self) -> list[tuple[str, str, int]]:
        """Listener, host and port, also of those that speak another protocol than Kafka's."""
        http = [] if self.http_address is None else [(HTTP_NAME, *self.http_address)]
        grpc = [] if self.grpc_address is None else [(GRPC_NAME, *self.grpc_address)]
        metrics = [] if self.metrics_address is None else [(METRICS_NAME, *self.metrics_address)]
        return [*self.addresses, *http, *grpc, *metrics]

    def _with_tls(
        self, listener: Listener, plain: Callable[[Listener], Any]
    ) -> Callable[[Listener], asyncio.BaseProtocol]:
        from kbroker.network.tls import TlsStream
        from kbroker.network.tls_listeners import TlsListeners
        from kbroker.security.tls.errors import TlsError

        if self._tls is None:
            self._tls = TlsListeners(self._settings, self._running.worker, self.budget)
            self.broker.dynamic_configs.reconfigurables.append(self._tls)
            self._look_at_files()
        try:
            source = self._tls.open(listener)
        except TlsError as error:
            raise StartError(str(error)) from None
        return lambda listener: TlsStream(plain(listener), source)

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
        self._running.advance_time(ms)

    # upkeep

    def _look_around(self, now_ms: int) -> None:
        self.connections.close_stalled(now_ms)
        self.connections.close_late_strangers(now_ms)

    # stopping

    async def stop(self) -> None:
        for server in self._sockets:
            server.close()
        await self.connections.drain()
        for timer in (self._idle_sweep, self._file_watch):
            if timer is not None:
                timer.cancel()
        await self._running.close()


def _cannot_listen(listener: Listener, error: OSError) -> str:
    where = f"{listener.host}:{listener.port}"
    flags = {HTTP: "--http-port", GRPC: "--grpc-port", METRICS: "--metrics-port"}
    flag = flags.get(listener.protocol, "--port")
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {where}: the host name is not known"
    if error.errno == 98:
        return (
            f"cannot listen on {where}: the port is in use. Stop the program that has it, "
            f"or choose another one with {flag} (0 picks a free one)"
        )
    if error.errno == 13:
        return f"cannot listen on {where}: ports below 1024 need privileges; choose another one with {flag}"
    return f"cannot listen on {where}: {error.strerror or error}"


def _tell_failure(name: str, loaded: Pending[Speakers]) -> None:
    try:
        loaded.result()
    except Exception:
        logger.exception("what speaks %s cannot be loaded", name)


def _check_grpc_is_installed() -> None:
    """Without loading it: that is left to the first connection."""
    for module in ("h2", "google.protobuf"):
        try:
            found = find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise StartError("gRPC needs more than is installed: pip install 'kbroker[grpc]'")


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
    manager = _service_manager()
    server = await Server.open(settings)
    await server.start()
    if server.has_files_to_reload:
        loop.add_signal_handler(signal.SIGHUP, server.reload)
    _give_back_memory(server, freed)
    if with_parent:
        _watch_parent(loop, stop)
    await ready(server)
    if manager is not None:
        manager.ready(f"serving on {', '.join(f'{host}:{port}' for _, host, port in server.all_addresses)}")
    await stop.wait()
    if manager is not None:
        manager.stopping("stopping")
    await _drain(server, settings, stop)
    logger.info("stopping")
    await server.stop()
    if manager is not None:
        manager.close()


def _service_manager() -> ServiceManager | None:
    """Who started the process, if they want to hear how it goes."""
    if not os.environ.get("NOTIFY_SOCKET"):
        return None
    from kbroker.network.service_manager import ServiceManager

    return ServiceManager(os.environ)


async def _drain(server: Server, settings: Settings, stop: asyncio.Event) -> None:
    """Go on serving while those who send work find out that they shall not; a second signal ends that."""
    server.broker.health.draining = True
    drain_ms: int = settings["kbroker.drain.ms"]
    if not drain_ms:
        return
    logger.info("not ready any more, and stopping in %d ms (kbroker.drain.ms)", drain_ms)
    stop.clear()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(drain_ms / 1000):
            await stop.wait()
