"""A broker on an event loop: its data opened, what is due done, all of it closed. It has no sockets: those
are the server's.

Start: lock and open the data directory, open the catalog, put the broker together. Stop: flush and close the
logs, close the catalog, release the lock.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.broker import Broker
from kbroker.catalog.errors import CatalogUnreadable
from kbroker.data_directory import DataDirectoryError, identify, open_data, refused
from kbroker.network.awaiting import settled
from kbroker.network.budget import Budget
from kbroker.network.threads import ThreadWorker

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog
    from kbroker.config.settings import Settings
    from kbroker.storage.interface import Directory

logger = logging.getLogger("kbroker.server")

_IO_THREADS = 4
_MIN_TICK_MS = 10


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


class RunningBroker:
    @classmethod
    async def open(cls, settings: Settings) -> RunningBroker:
        """On the loop that runs."""
        worker = ThreadWorker(asyncio.get_running_loop(), _IO_THREADS)
        clock = Clock()
        logs, catalog = await settled(open_data(settings, worker, clock.now_ms()))
        return cls(settings, logs, catalog, worker, clock)

    def __init__(
        self, settings: Settings, logs: Directory, catalog: Catalog, worker: ThreadWorker, clock: Clock
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.settings = settings
        self.logs = logs
        self.worker = worker
        self.now_ms = clock.now_ms
        self.budget = Budget(settings["queued.max.request.bytes"])
        self._catalog = catalog
        self._clock = clock
        self._housekeeping: asyncio.TimerHandle | None = None
        try:
            self.broker = Broker(
                settings,
                catalog,
                logs,
                worker=worker,
                scheduler=LoopScheduler(self.loop),
                budget=self.budget,
                clock=self.now_ms,
            )
            identify(settings, self.broker.cluster.cluster_id)
        except (CatalogUnreadable, DataDirectoryError) as error:
            raise refused(settings, logs, error) from error
        catalog.start(self.loop.call_soon_threadsafe)

    def keep_house(self, look_around: Callable[[int], None] = lambda now_ms: None) -> None:
        """Do what is due, from now on until it is closed. ``look_around``: called at least once a second."""
        now_ms = self.now_ms()
        try:
            self.logs.tick(now_ms)
        except Exception:
            logger.exception("housekeeping failed")
        look_around(now_ms)
        pause_ms = min(max(self.logs.next_deadline() - now_ms, _MIN_TICK_MS), 1000)
        self._housekeeping = self.loop.call_later(pause_ms / 1000, self.keep_house, look_around)

    def advance_time(self, ms: int) -> None:
        """Let the clock jump: sessions, rebalances, retention and transactions time out."""
        self._clock.advance(ms)
        self.broker.time_jumped()
        self.logs.tick(self.now_ms())

    async def close(self) -> None:
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        self.broker.close()
        if "traces" in self.broker.__dict__:
            await settled(self.broker.traces.close())
        if "client_metrics" in self.broker.__dict__:
            await settled(self.broker.client_metrics.close())
        if self.broker.audit is not None:
            await settled(self.broker.audit.close())
        await self.loop.run_in_executor(None, self._catalog.close)
        self.logs.close()
        self.worker.stop()
