"""Worker threads for calls that block in the kernel, their results brought back onto the loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kbroker.pending import Pending

T = TypeVar("T")


class ThreadWorker:
    """The Worker of kbroker.storage.worker, on a small thread pool."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="kbroker-io")

    def run(self, function: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()

        def call() -> None:
            try:
                value = function()
            except Exception as error:
                self._deliver(pending.fail, error)
            else:
                self._deliver(pending.resolve, value)

        self._pool.submit(call)
        return pending

    def stop(self) -> None:
        """Wait for what runs; nothing new is taken."""
        self._pool.shutdown(wait=True)

    def _deliver(self, settle: Callable[[T], None], value: T) -> None:
        # A RuntimeError means that the loop is closed: nobody is left to hear of it.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle, value)
