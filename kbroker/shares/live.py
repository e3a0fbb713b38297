"""A share partition in use: its states, who waits for its records, and who reads for it.

Invariant: one fetch at a time reads the log for it, so that no two are offered the same records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.coordinators.shares.partition import SharePartition
    from kbroker.coordinators.shares.store import ShareKey
    from kbroker.storage.interface import Log


class LiveShare:
    __slots__ = (
        "_missed",
        "_waiters",
        "closed",
        "key",
        "log",
        "partition",
        "reader",
        "record_bytes",
        "writes",
    )

    def __init__(self, key: ShareKey, partition: SharePartition, log: Log) -> None:
        self.key = key
        self.partition = partition
        self.log = log
        self.closed = False  # its state was replaced, or nobody uses it: it is to be opened anew
        self.reader: object | None = None
        self.writes = 0  # under way
        self.record_bytes = 0.0  # what a record took in the log when it was read last
        self._missed = False  # somebody has passed it by because of the reader
        self._waiters: dict[Callable[[], None], None] = {}
        partition.on_available = self.wake

    def has_something(self, *, committed: bool) -> bool:
        """Whether a read of the log might find records to acquire."""
        if self.reader is not None:
            self._missed = True
            return False
        log, partition = self.log, self.partition
        end_offset = log.last_stable_offset if committed else log.high_watermark
        # Most have nothing new, which takes no look at their settings.
        return partition.first_open_offset() < end_offset and partition.next_fetch_offset() is not None

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Called when records have become available, or the reader is done, or it is closed.

        Returns the function that ends it. A callback must not raise.
        """
        self._waiters[callback] = None
        return lambda: self._unwatch(callback)

    def wake(self) -> None:
        for callback in list(self._waiters):
            callback()

    def let_go(self, reader: object) -> None:
        """The reader has read and acquired, or given up."""
        if self.reader is reader:
            self.reader = None
            if self._missed:
                self._missed = False
                self.wake()

    def _unwatch(self, callback: Callable[[], None]) -> None:
        self._waiters.pop(callback, None)
