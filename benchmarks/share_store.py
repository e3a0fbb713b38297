"""What it costs to store the states of share partitions: journaled acknowledgements, merging, loading.

`python -m benchmarks.share_store [--scale S]`. CPU time, which the noise of the machine touches least.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from kbroker.catalog.rows import TopicRow
from kbroker.catalog.sqlite.catalog import SqliteCatalog
from kbroker.catalog.sqlite.shares import SqliteShareStateStore
from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange
from kbroker.coordinators.shares.store import ShareKey

TOPIC = bytes(15) + b"\x01"
ROW = "{:58} {:8.2f} {}\n"


class Timers:
    """What comes later comes when the benchmark says so."""

    def __init__(self) -> None:
        self._due: list[Callable[[], None]] = []

    def soon(self, callback: Callable[[], None]) -> None:
        callback()

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        self._due.append(callback)
        return lambda: None

    def fire(self) -> None:
        due, self._due = self._due, []
        for callback in due:
            callback()


@contextmanager
def opened(directory: Path, timers: Timers) -> Iterator[SqliteShareStateStore]:
    catalog = SqliteCatalog.open(directory)
    if not catalog.snapshot().topics:
        catalog.create_topic(TopicRow("t", TOPIC, 1, 0), {}).result()
    store = catalog.share_state_store(timers)
    yield store
    store.close()
    catalog.close()


def seconds(function: Callable[[], object]) -> float:
    start = process_time()
    function()
    return process_time() - start


def acknowledged(first: int, count: int = 1) -> tuple[Run, ...]:
    """Every second record."""
    return tuple(
        Run(offset, offset, RecordState.ACKNOWLEDGED, 1) for offset in range(first, first + 2 * count, 2)
    )


def measure(directory: Path, scale: float) -> None:
    keys = [ShareKey("group", TOPIC, partition) for partition in range(max(1, int(1000 * scale)))]
    timers, count = Timers(), max(10, int(50_000 * scale))
    with opened(directory, timers) as store:
        store.put({key: ShareState(0, acknowledged(0, 100)) for key in keys}).result()
        for runs in (1, 10):
            changes = [
                ShareStateChange(20 * number, acknowledged(20 * number, runs)) for number in range(count)
            ]
            spent = seconds(lambda changes=changes: [store.write({keys[0]: change}) for change in changes])
            tell(f"acknowledge {runs} record(s)", spent / count * 1e6, "µs")
            tell(f"merge {count} such changes into one row", seconds(timers.fire) * 1e3, "ms")
        store.put({keys[0]: ShareState(0, acknowledged(0, 2000))}).result()
        for _ in range(1000):
            store.write({keys[0]: ShareStateChange(0, acknowledged(random.randrange(4000)))})
        tell("merge 1000 changes into 2000 runs", seconds(timers.fire) * 1e3, "ms")
        store.put({keys[0]: ShareState(0, acknowledged(0, 100))}).result()
        for key in keys:
            for number in range(20):
                store.write({key: ShareStateChange(0, acknowledged(2 * number + 1))})
        tell(f"merge 20 changes into each of {len(keys)} rows of 100 runs", seconds(timers.fire) * 1e3, "ms")
    with opened(directory, timers) as store:
        tell(f"load {len(keys)} share partitions of 100 runs", seconds(store.load) * 1e3, "ms")


def tell(what: str, number: float, unit: str) -> None:
    sys.stdout.write(ROW.format(what, number, unit))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full amount of work")
    with TemporaryDirectory() as directory:
        measure(Path(directory), parser.parse_args().scale)
