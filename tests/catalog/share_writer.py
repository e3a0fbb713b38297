"""Acknowledges records of share partitions as fast as it can, and tells which are stored, until it is killed.

Every second partition is put anew now and then, which takes what is journaled along.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kbroker.catalog.rows import TopicRow
from kbroker.catalog.sqlite.catalog import SqliteCatalog
from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange
from kbroker.coordinators.shares.store import ShareKey

TOPIC = bytes(15) + b"\x01"
KEYS = [ShareKey("g", TOPIC, partition) for partition in range(4)]


class Timers:
    """Calls that come within milliseconds, when the loop below looks."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def soon(self, callback: Callable[[], None]) -> None:
        self.due.append(callback)

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        self.due.append(callback)
        return lambda: None


def main(directory: Path) -> None:
    catalog = SqliteCatalog.open(directory)
    if not catalog.snapshot().topics:
        catalog.create_topic(TopicRow("t", TOPIC, len(KEYS), 0), {}).result()
    timers = Timers()
    store = catalog.share_state_store(timers)
    states = store.load()
    if not states:
        store.put(dict.fromkeys(KEYS, ShareState(0))).result()
    next_offset = max((state.start_offset for state in states.values()), default=0) + 1
    delivered: list[Callable[[], None]] = []
    lock = threading.Lock()

    def deliver(callback: Callable[[], None]) -> None:
        with lock:
            delivered.append(callback)

    catalog.start(deliver)
    for offset in range(next_offset, sys.maxsize):
        key = KEYS[offset % len(KEYS)]
        if offset % 50 < len(KEYS) // 2:
            putting = store.put({key: ShareState(offset)})
            while not putting.done:
                time.sleep(0)
                with lock:
                    callbacks, delivered[:] = delivered[:], []
                for callback in callbacks:
                    callback()
            putting.result()
        else:
            run = Run(offset + 1, offset + 1, RecordState.ACKNOWLEDGED, 1)
            store.write({key: ShareStateChange(offset, (run,))}).result()
        sys.stdout.write(f"{key.partition} {offset}\n")
        sys.stdout.flush()
        if offset % 20 == 0:
            due, timers.due = timers.due, []
            for callback in due:
                callback()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
