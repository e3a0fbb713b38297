"""A broker in this process: opened on the event loop that runs, and closed with its `async with`.

Without listeners no socket is opened, and nothing is loaded that connections need. With a port, or listeners
in its configs, Kafka clients are served beside the code in the process; with an HTTP port, HTTP is.

Its calls belong to the event loop on which it was opened. Several brokers may be in one process, and on one
loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Self

from kbroker.catalog.errors import CatalogError
from kbroker.config.errors import SettingError
from kbroker.config.settings import Settings
from kbroker.data_directory import DataDirectoryError
from kbroker.local.calls import Calls
from kbroker.local.configs import Configs, ConfigValue, config_text
from kbroker.local.errors import ClosedError, OpenError
from kbroker.local.groups import Groups
from kbroker.local.publishing import Publishing
from kbroker.local.reading import Reading
from kbroker.local.topics import Topics
from kbroker.local.transactions import Transactions
from kbroker.network.awaiting import settled
from kbroker.running_broker import RunningBroker
from kbroker.security.principal import Principal

if TYPE_CHECKING:
    from kbroker.quotas.throttling import RequestThrottle
    from kbroker.server import Server

logger = logging.getLogger("kbroker")

_LEAVE_SECONDS = 10


class LocalAccess(Topics, Publishing, Reading, Groups, Transactions, Configs):
    """All that code in the process may ask for, in somebody's name."""


class LocalCaller:
    """A user in whose name code in the process asks, for the authorizer and the audit log."""

    peer_host = "127.0.0.1"
    api_name = "local"
    throttle: RequestThrottle | None = None

    def __init__(self, name: str) -> None:
        self.principal = Principal("User", name)


class LocalBroker(LocalAccess):
    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        http_port: int | None = None,
        configs: Mapping[str, ConfigValue] | None = None,
    ) -> None:
        """``data``: a directory; without it everything is in memory. A port of 0 is a free one.

        ``configs``: settings by Kafka's names; those of the environment do not count. Raises OpenError.
        """
        super().__init__(Calls(), None)
        flags = {name: config_text(value) for name, value in (configs or {}).items()}
        if "log.dirs" in flags or "log.dir" in flags:
            raise OpenError("the data directory is not one of the configs: give it as data=…")
        self._serves_kafka = host is not None or port is not None or "listeners" in flags
        if data is None:
            flags["kbroker.in.memory"] = "true"
        else:
            flags["log.dirs"] = os.fspath(data)
        if http_port is not None:
            flags["kbroker.http.port"] = str(http_port)
        self._load = partial(Settings.load, flags=flags, host=host, port=port)
        self._settings()
        self._running: RunningBroker | None = None
        self._server: Server | None = None

    # its life

    async def open(self) -> None:
        """What `async with` does first. Raises OpenError."""
        if self._running is not None:
            raise RuntimeError("the broker is open already")
        settings = self._settings()
        if settings.warning:
            logger.warning("%s", settings.warning)
        try:
            running = self._running = await RunningBroker.open(settings)
        except (DataDirectoryError, CatalogError) as error:
            raise OpenError(str(error)) from error
        try:
            await self._listen(running)
        except BaseException:
            await self._stop()
            raise
        self._calls.begin(running.broker)

    async def close(self) -> None:
        """What `async with` does last. Who still waits for something hears that it is closed."""
        if not self._calls.is_open:
            return
        _ = self._calls.broker  # on its own loop only
        self._calls.end()
        closing = asyncio.ensure_future(self._close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing  # files must not stay open, and the directory locked
            raise

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # who asks, and where it is

    def as_user(self, name: str) -> LocalAccess:
        """The same broker, asked in the name of a user: where it has an authorizer, that decides."""
        return LocalAccess(self._calls, LocalCaller(name))

    @property
    def cluster_id(self) -> str:
        return self._calls.broker.cluster.cluster_id

    @property
    def bootstrap_servers(self) -> str:
        """For Kafka clients: host:port. Only with a port, or listeners."""
        if self._server is None or not self._server.addresses:
            raise ClosedError("the broker listens to no Kafka clients: LocalBroker(port=0) takes a free port")
        _, host, port = self._server.addresses[0]
        return _address(host, port)

    @property
    def http_url(self) -> str:
        """Of the HTTP API. Only with an HTTP port."""
        if self._server is None or self._server.http_address is None:
            raise ClosedError("the broker has no HTTP API: LocalBroker(http_port=0) takes a free port")
        listener = self._settings().http_listener()
        scheme = "https" if listener is not None and listener.uses_tls else "http"
        return f"{scheme}://{_address(*self._server.http_address)}"

    # internals

    def _settings(self) -> Settings:
        try:
            return self._load()
        except SettingError as error:
            raise OpenError(str(error).removeprefix("the command line: ")) from error

    async def _listen(self, running: RunningBroker) -> None:
        settings = running.settings
        http = settings.http_listener()
        if not self._serves_kafka and http is None:
            running.keep_house()
            return
        from kbroker.server import Server, StartError

        self._server = Server(running)
        try:
            await self._server.start((*(settings.listeners if self._serves_kafka else ()), http))
        except StartError as error:
            raise OpenError(str(error)) from error

    async def _close(self) -> None:
        leaving = [source.close() for source in list(self._calls.sources)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                for each in leaving:
                    await settled(each)
        await self._stop()

    async def _stop(self) -> None:
        running, self._running = self._running, None
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
        elif running is not None:
            await running.close()


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
