"""Where blocking work runs: the seam between storage and threads.

``run`` executes a function that blocks in the kernel (fdatasync, a cold read, an SQLite commit) elsewhere and
settles the returned Pending on the caller's thread. Functions given to it must spend their time with the GIL
released; Python CPU work belongs into a worker process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from kbroker.pending import Pending

T = TypeVar("T")


class Worker(Protocol):
    def run(self, function: Callable[[], T]) -> Pending[T]: ...


class InlineWorker:
    """Runs at once, on the caller's thread: for tests and tools."""

    def run(self, function: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        try:
            value = function()
        except Exception as error:
            pending.fail(error)
        else:
            pending.resolve(value)
        return pending
