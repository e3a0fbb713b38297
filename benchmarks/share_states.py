"""What the states of records of share groups cost: `python -m benchmarks.share_states`.

The usual way of records through a share partition, single acknowledgements, and very many records in flight:
as many as requests can bring about (the highest share.partition.max.record.locks, and as many more of one
log batch), and a million, which they cannot.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable

from kbroker.coordinators.shares.partition import (
    Acknowledgement,
    AcknowledgeType,
    AcquireMode,
    Change,
    LogBatch,
    SharePartition,
)
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.state import ShareState

ACCEPT, RELEASE = int(AcknowledgeType.ACCEPT), int(AcknowledgeType.RELEASE)
BATCH = 500
ROUNDS = 20_000
DENSE = 10_000
REACHABLE = 20_000
MANY = 1_000_000


def partition(max_record_locks: int) -> SharePartition:
    settings = ShareSettings(partition_max_record_locks=max_record_locks)
    return SharePartition(ShareState(0), lambda: settings)


def acquire(share: SharePartition, batches: list[LogBatch], max_records: int = BATCH) -> None:
    offset = share.next_fetch_offset()
    assert offset is not None
    acquired, _ = share.acquire(
        "member",
        batches,
        fetch_offset=offset,
        max_records=max_records,
        batch_size=BATCH,
        mode=AcquireMode.BATCH_OPTIMIZED,
        now_ms=0,
    )
    assert acquired


def acknowledge(share: SharePartition, first: int, last: int, kind: int) -> None:
    settle(share, share.acknowledge("member", [Acknowledgement(first, last, [kind])], 0))


def settle(share: SharePartition, change: Change | None) -> None:
    assert change is not None
    share.settle(change, stored=True, now_ms=0)


def taken(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def usual(rounds: int) -> float:
    """Seconds to acquire, accept and settle a batch."""
    share = partition(2_000)
    batches = [[LogBatch(first, first + BATCH - 1)] for first in range(0, rounds * BATCH, BATCH)]

    def work() -> None:
        for batch in batches:
            acquire(share, batch)
            acknowledge(share, *batch[0], ACCEPT)

    return taken(work) / rounds


def single(records: int, offsets: Iterable[int]) -> float:
    """Seconds to accept one record of many that were acquired together."""
    share = partition(records)
    acquire(share, [LogBatch(0, records - 1)], records)

    def work() -> None:
        for offset in offsets:
            acknowledge(share, offset, offset, ACCEPT)

    seconds = taken(work) / records
    assert share.start_offset == records
    return seconds


def filled(records: int) -> SharePartition:
    share = partition(records)
    for first in range(0, records, BATCH):
        acquire(share, [LogBatch(first, first + BATCH - 1)])
    return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    scale = parser.parse_args().scale
    rounds, dense = max(1, int(ROUNDS * scale)), max(10, int(DENSE * scale))

    print(f"acquire {BATCH} records, accept them as one range: {usual(rounds) * 1e6:.1f} µs")
    shuffled = random.Random(1).sample(range(dense), dense)
    for name, offsets in (
        ("in order", range(dense)),
        ("backwards", range(dense)[::-1]),
        ("at random", shuffled),
    ):
        print(f"accept one of {dense:,} records, {name}: {single(dense, offsets) * 1e6:.1f} µs")
    for records in (REACHABLE, MANY):
        in_flight(max(1, int(records * scale) // BATCH) * BATCH)


def in_flight(many: int) -> None:
    share = filled(many)
    halves = [Acknowledgement(first, first, [RELEASE]) for first in range(0, many, 2)]
    print(f"{many:,} records in flight:")
    print(f"  to store all of it: {taken(share.state) * 1e3:.1f} ms")
    change: list[Change | None] = []
    cut = taken(lambda: change.append(share.acknowledge("member", halves, 0)))
    print(f"  release every second one: {(cut + taken(lambda: settle(share, change.pop()))) * 1e3:.0f} ms")
    print(f"  to store all of that: {taken(share.state) * 1e3:.0f} ms")
    print(f"  find the first that is available: {taken(share.next_fetch_offset) * 1e6:.0f} µs")
    leases = share.leases_of("member")
    print(f"  the end of a session: {taken(lambda: change.append(share.release(leases, 0))) * 1e3:.0f} ms")
    settle(share, change.pop())
    print(f"  the log start moves by half: {taken(lambda: share.log_start_moved(many // 2, 0)) * 1e3:.1f} ms")

    tracemalloc.start()
    share = filled(many)
    print(f"  memory: {tracemalloc.get_traced_memory()[0] / 1e6:.1f} MB, ", end="")
    settle(share, share.acknowledge("member", halves, 0))
    print(f"{tracemalloc.get_traced_memory()[0] / 1e6:.1f} MB if every second one is released")
    tracemalloc.stop()


if __name__ == "__main__":
    sys.exit(main())
