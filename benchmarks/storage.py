"""The segment store alone: append, read, open many, recover; each beside a raw copy of the same bytes.

`python -m benchmarks.storage [MEGABYTES [PARTITIONS]]`
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kbroker.protocol.records import Record, build_batch
from kbroker.storage.config import LogConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.interface import Log, Slice
from kbroker.storage.worker import InlineWorker

_NOW = 1_700_000_000_000
_ID = bytes(range(16))


def open_directory(path: Path) -> LogDirectory:
    return LogDirectory.open(str(path), worker=InlineWorker(), now_ms=_NOW)


def seconds_of(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def append(log: Log, batch: bytes, count: int) -> None:
    buffer = bytearray(batch)
    view = memoryview(buffer)
    for _ in range(count):
        buffer[:8] = bytes(8)  # the log writes its offset here
        log.append_as_leader(view, _NOW)


def raw_copy(path: Path, batch: bytes, count: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    for _ in range(count):
        os.write(file, batch)
    os.close(file)


def read_all(log: Log) -> None:
    offset = 0
    while offset < log.high_watermark:
        part = log.read(offset, 1 << 20)
        assert isinstance(part, Slice)
        offset = part.next_offset


def recover(path: Path) -> None:
    open_directory(path).close()


def main(megabytes: int = 200, partitions: int = 2_000) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for name, size in (("16 KiB", 16_000), ("1 MiB", 1_000_000)):
            batch = build_batch([Record(_NOW, None, bytes(1000))] * (size // 1010))
            count = max(1, megabytes * 1_000_000 // len(batch))
            volume = count * len(batch) / 1e6
            directory = open_directory(root / name)
            log = directory.log(_ID, "t", 0, LogConfig(), 0)
            wrote = seconds_of(partial(append, log, batch, count))
            limit = seconds_of(partial(raw_copy, root / f"{name}.raw", batch, count))
            read = seconds_of(partial(read_all, log))
            print(f"append {name}: {volume / wrote:.0f} MB/s (raw copy {volume / limit:.0f} MB/s)")
            print(f"read   {name}: {volume / read:.0f} MB/s")
            directory.close()
            (root / name / ".kafka_cleanshutdown").unlink()
            (root / name / "recovery-point-offset-checkpoint").unlink()
            recovered = seconds_of(partial(recover, root / name))
            print(f"recover {name}: {volume / recovered:.0f} MB/s")
            shutil.rmtree(root / name)
        batch = build_batch([Record(_NOW, None, b"x" * 100)])
        directory = open_directory(root / "many")
        for partition in range(partitions):
            append(directory.log(_ID, "many", partition, LogConfig(), 0), batch, 1)
        directory.close()
        opened = seconds_of(lambda: open_directory(root / "many"))
        print(f"open {partitions} partitions after a clean stop: {opened:.3f} s")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
