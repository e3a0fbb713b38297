"""The limit: the same bytes through a bare copy between socket and file, with a client that costs nothing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks.bare_copy import ANSWER_BYTES
from benchmarks.compare.brokers import Meter
from benchmarks.compare.measures import GIB, Numbers
from benchmarks.raw import ask_for_bytes, produce_frame, pump

_OVERHEAD = 70  # of a batch


class _Copy(NamedTuple):
    address: tuple[str, int]
    pid: int


@contextmanager
def bare_copy() -> Iterator[_Copy]:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "benchmarks.bare_copy", f"{directory}/copy"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield _Copy(("127.0.0.1", int(process.stdout.readline())), process.pid)
            finally:
                process.kill()


def produced(volume_bytes: int, record_bytes: int, batch_bytes: int) -> Callable[[float], Numbers]:
    """Frames of the size that the producer's batches have, written to a file."""

    def run(scale: float) -> Numbers:
        frame = produce_frame("t", 0, batch_bytes)
        count = max(20, int(volume_bytes * scale / batch_bytes))
        with bare_copy() as copy:
            pump(copy.address, [frame], 10)
            meter = Meter(copy)
            seconds = pump(copy.address, [frame], count)
            cpu = meter.cpu_seconds
        records = count * (batch_bytes - _OVERHEAD) / record_bytes
        return {"records_per_s": records / seconds, "cpu_s_per_gib": cpu / (records * record_bytes / GIB)}

    return run


def consumed(volume_bytes: int) -> Callable[[float], Numbers]:
    """A file read and sent, a megabyte an answer."""

    def run(scale: float) -> Numbers:
        count = max(5, int(volume_bytes * scale) // ANSWER_BYTES)
        with bare_copy() as copy:
            pump(copy.address, [produce_frame("t", 0, 900_000)], count)
            meter = Meter(copy)
            seconds = ask_for_bytes(copy.address, count)
            cpu = meter.cpu_seconds
        return {
            "mb_per_s": count * ANSWER_BYTES / 2**20 / seconds,
            "cpu_s_per_gib": cpu / (count * ANSWER_BYTES / GIB),
        }

    return run
