"""The process, by the names that Prometheus' clients use; read from /proc."""

from __future__ import annotations

import os
import resource
from functools import cache
from pathlib import Path

from kbroker.observability.families import COUNTER, GAUGE, Number, value

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def _memory(field: int) -> int | None:
    try:
        return int(Path("/proc/self/statm").read_text().split()[field]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None


def _virtual_bytes() -> int | None:
    return _memory(0)


def _resident_bytes() -> int | None:
    return _memory(1)


@cache
def _start_seconds() -> float | None:
    try:
        booted = next(
            float(line.split()[1])
            for line in Path("/proc/stat").read_text().splitlines()
            if line.startswith("btime")
        )
        # The name, in brackets, may have blanks in it.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return booted + int(fields[19]) / _TICKS_PER_SECOND
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _open_files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # the one that lists them
    except OSError:
        return None


def _most_files() -> Number:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


FAMILIES = (
    value(
        "process_cpu_seconds_total",
        COUNTER,
        "Processor time of this process.",
        lambda broker: _cpu_seconds(),
    ),
    value("process_resident_memory_bytes", GAUGE, "Resident memory.", lambda broker: _resident_bytes()),
    value("process_virtual_memory_bytes", GAUGE, "Virtual memory.", lambda broker: _virtual_bytes()),
    value(
        "process_start_time_seconds",
        GAUGE,
        "When the process was started, in seconds since 1970.",
        lambda broker: _start_seconds(),
    ),
    value("process_open_fds", GAUGE, "Open files and sockets.", lambda broker: _open_files()),
    value("process_max_fds", GAUGE, "How many there may be.", lambda broker: _most_files()),
)
