"""What the log costs, beside the same bytes moved bare: python -m benchmarks.storage [--scale 0.01]

Every row is the best of several runs in one process; MB are 10**6 bytes of batch. The limit of an append is a
bare pwrite of the same batch, of a read a bare pread, of recovery a read of the file and one checksum of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kbroker.protocol.records import Record, build_batch
from kbroker.protocol.records.crc32c import crc32c
from kbroker.storage.config import LogConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.interface import Slice
from kbroker.storage.partition.log import PartitionLog
from kbroker.storage.worker import InlineWorker

RUNS = 3
NOW = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=2**31 - 1, max_message_bytes=4 << 20, retention_ms=-1)
FETCH_BYTES = 1 << 20


def batch_of(size: int) -> bytearray:
    value = os.urandom(min(1000, max(1, size - 80)))
    records = [Record(NOW, b"key", value)] * max(1, size // (len(value) + 14))
    return bytearray(build_batch(records, producer_id=-1))


def best(run: Callable[[], float]) -> float:
    return min(run() for _ in range(RUNS))


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


class Bench:
    def __init__(self, root: Path, scale: float) -> None:
        self._root = root
        self._scale = scale

    def open(self) -> LogDirectory:
        return LogDirectory.open(str(self._root / "data"), worker=InlineWorker(), now_ms=NOW)

    def fresh(self) -> LogDirectory:
        shutil.rmtree(self._root / "data", ignore_errors=True)
        return self.open()

    def line(self, name: str, figure: str, limit: str = "", ratio: float | None = None) -> None:
        share = f"{ratio:6.2f}" if ratio is not None else ""
        print(f"{name:<34} {figure:>22} {limit:>22} {share}", flush=True)

    def rates(self, name: str, size: int, taken: float, bare: float) -> None:
        ours, theirs = (f"{size / seconds / 1e6:,.0f} MB/s" for seconds in (taken, bare))
        self.line(name, ours, theirs, bare / taken)

    # rows

    def append(self, batch_bytes: int) -> None:
        batch = batch_of(batch_bytes)
        view = memoryview(batch)
        count = max(10, int(self._scale * (256 << 20) / len(batch)))

        def ours() -> float:
            directory = self.fresh()
            log = directory.log(bytes(16), "bench", 0, CONFIG, 0)

            def work() -> None:
                for _ in range(count):
                    batch[:8] = bytes(8)
                    log.append_as_leader(view, NOW)

            taken = timed(work)
            directory.close()
            return taken

        def bare() -> float:
            path = self._root / "bare"
            fd = os.open(path, os.O_RDWR | os.O_CREAT)

            def work() -> None:
                for index in range(count):
                    os.pwrite(fd, view, index * len(batch))

            taken = timed(work)
            os.close(fd)
            path.unlink()
            return taken

        taken, limit = best(ours), best(bare)
        self.rates(f"append, batches of {len(batch):,} bytes", len(batch) * count, taken, limit)
        self.line("", f"{taken / count * 1e6:.1f} µs a batch", f"{limit / count * 1e6:.1f} µs")

    def read(self, batch_bytes: int) -> None:
        directory, log = self._filled(batch_bytes)
        size = log.size_bytes

        def ours() -> float:
            def work() -> None:
                offset = 0
                while offset < log.log_end_offset:
                    found = log.read(offset, FETCH_BYTES)
                    assert isinstance(found, Slice)
                    offset = found.next_offset

            return timed(work)

        def bare() -> float:
            fd = os.open(log.segments[0].file.path, os.O_RDONLY)

            def work() -> None:
                for position in range(0, size, FETCH_BYTES):
                    os.preadv(fd, [bytearray(FETCH_BYTES)], position)

            taken = timed(work)
            os.close(fd)
            return taken

        self.rates(f"read on, batches of {batch_bytes:,} bytes", size, best(ours), best(bare))
        offsets = [log.log_end_offset * step // 1000 for step in range(1000)]
        sought = best(lambda: timed(lambda: [log.read(offset, 1) for offset in offsets])) / len(offsets)
        self.line("", f"{sought * 1e6:.0f} µs for one batch anywhere")
        directory.close()

    def recovery(self, batch_bytes: int) -> None:
        directory, log = self._filled(batch_bytes)
        path, size = log.segments[0].file.path, log.size_bytes
        log.complete()
        kill(directory)

        def ours() -> float:
            (self._root / "data" / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
            for snapshot in (self._root / "data" / "bench-0").glob("*.snapshot"):
                snapshot.unlink()
            opened: list[LogDirectory] = []
            taken = timed(lambda: opened.append(self.open()))
            kill(opened[0])
            return taken

        def bare() -> float:
            fd = os.open(path, os.O_RDONLY)

            def work() -> None:
                for position in range(0, size, FETCH_BYTES):
                    crc32c(os.pread(fd, FETCH_BYTES, position))

            taken = timed(work)
            os.close(fd)
            return taken

        self.rates(f"recover, batches of {batch_bytes:,} bytes", size, best(ours), best(bare))

    def partitions(self) -> None:
        count = max(10, int(10_000 * self._scale))
        directory = self.fresh()
        batch = batch_of(200)
        begin = time.perf_counter()
        for index in range(count):
            batch[:8] = bytes(8)
            directory.log(bytes(16), f"topic{index % 10}", index // 10, CONFIG, 0).append_as_leader(
                memoryview(batch), NOW
            )
        self.line(f"first append to {count:,} partitions", f"{time.perf_counter() - begin:.2f} s")
        self.line(f"close {count:,} partitions", f"{timed(directory.close):.2f} s")

        def reopen() -> float:
            opened: list[LogDirectory] = []
            taken = timed(lambda: opened.append(self.open()))
            opened[0].close()
            return taken

        self.line(f"open {count:,} partitions", f"{best(reopen) * 1000:.0f} ms")
        directory = self.open()
        each = timed(lambda: [directory.log(bytes(16), *key, CONFIG, 0) for key in directory.partitions()])
        self.line("… and use one of them", f"{each / count * 1000:.2f} ms")
        kill(directory)
        opened: list[LogDirectory] = []
        self.line(f"recover {count:,} partitions", f"{timed(lambda: opened.append(self.open())):.2f} s")
        opened[0].close()

    def _filled(self, batch_bytes: int) -> tuple[LogDirectory, PartitionLog]:
        directory = self.fresh()
        log = directory.log(bytes(16), "bench", 0, CONFIG, 0)
        batch = batch_of(batch_bytes)
        for _ in range(max(10, int(self._scale * (256 << 20) / len(batch)))):
            batch[:8] = bytes(8)
            log.append_as_leader(memoryview(batch), NOW)
        return directory, log


def kill(directory: LogDirectory) -> None:
    """Leave the directory as a killed process does."""
    directory._lock.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of 256 MB per row and 10,000 partitions")
    parser.add_argument("--directory", type=Path, help="where to write; else a temporary directory")
    arguments = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="kbroker-bench-", dir=arguments.directory))
    try:
        bench = Bench(root, arguments.scale)
        bench.line("", "kbroker", "the limit", None)
        for batch_bytes in (1024, 16 << 10, 1 << 20):
            bench.append(batch_bytes)
        for batch_bytes in (1024, 16 << 10, 1 << 20):
            bench.read(batch_bytes)
        for batch_bytes in (1024, 16 << 10, 1 << 20):
            bench.recovery(batch_bytes)
        bench.partitions()
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
