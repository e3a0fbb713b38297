"""A thousand idle streams, two hundred slow readers, messages and bodies without an end, which come and
vanish again and again, while Kafka's clients write and an honest stream reads: they must not notice.

`python -m tests.torture.streams --cycles 20` for long runs. It tells how long a Kafka producer waits for its
acknowledgements, alone and among them; the machine should do nothing else.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from statistics import quantiles
from typing import NamedTuple, Self

from kbroker.protocol.errors import ErrorCode
from tests.support.event_stream import EventStream
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess, eventually
from tests.torture.stream_clients import LOUD, QUIET

IDLE, SLOW, ENDLESS = 1000, 200, 100
RECORDS = 500  # of a cycle, and before the first one
LOUD_RECORDS, LOUD_BYTES = 400, 100_000
MOST_MEMORY_BYTES = 192 << 20  # more than before, with the numbers above
_TOPIC = "orders"


class Survived(NamedTuple):
    cycles: int
    seconds: float
    records: int
    alone_ms: str
    """Of a producer: the middle one of its acknowledgements, and the 99th of a hundred."""
    among_ms: str
    grown_bytes: int
    cpu_seconds: float
    """Of the broker, while all were there."""
    left_bytes: int
    """When all are gone again."""
    lost: int  # records
    tracebacks: int

    @property
    def ok(self) -> bool:
        return self.records > 0 and self.grown_bytes < MOST_MEMORY_BYTES and not any(self[-2:])


class Producer(threading.Thread):
    """Writes one record after the other, and looks at the clock."""

    def __init__(self, server: ServerProcess, records: int, first: int) -> None:
        super().__init__(daemon=True)
        self.waited: list[float] = []
        self.error: BaseException | None = None
        self._server = server
        self._numbers = range(first, first + records)

    def run(self) -> None:
        try:
            with self._server.client() as client:
                for number in self._numbers:
                    began = time.perf_counter()
                    assert produce(client, _TOPIC, 0, b"%d" % number) is ErrorCode.NONE
                    self.waited.append(time.perf_counter() - began)
        except BaseException as error:
            self.error = error

    def written(self) -> Self:
        self.start()
        self.join(120)
        if self.error is not None:
            raise self.error
        assert len(self.waited) == len(self._numbers)
        return self


class Reader(threading.Thread):
    """An honest one: it notes what it reads."""

    def __init__(self, server: ServerProcess) -> None:
        super().__init__(daemon=True)
        self.values: list[int] = []
        self._stream = EventStream(
            server.url, f"/topics/{_TOPIC}/stream?offset=earliest", timeout=600
        ).begun()

    def run(self) -> None:
        with self._stream:
            for event in self._stream.events():
                if event.name == "message":
                    self.values.append(event.json["value"])


class Burden:
    """The process of the others."""

    def __init__(self, server: ServerProcess, idle: int, slow: int, endless: int) -> None:
        counts = map(str, (idle, slow, endless))
        command = [sys.executable, "-m", "tests.torture.stream_clients", server.url, *counts]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def vanish(self) -> None:
        self._process.kill()
        self._process.communicate()


def run(
    cycles: int,
    *,
    idle: int = IDLE,
    slow: int = SLOW,
    endless: int = ENDLESS,
    records: int = RECORDS,
    loud_records: int = LOUD_RECORDS,
) -> Survived:
    with ServerProcess("--in-memory", "--http-port", "0") as server:
        with server.client() as client:
            for topic in (_TOPIC, QUIET, LOUD):
                assert create(client, topic, 1) is ErrorCode.NONE
            for _ in range(loud_records):
                assert produce(client, LOUD, 0, b"x" * LOUD_BYTES) is ErrorCode.NONE
        reader = Reader(server)
        reader.start()
        Burden(server, 2, 2, 2).vanish()  # what is loaded with the first of them
        alone = Producer(server, records, 0).written().waited
        before = grown = server.memory_bytes()
        began = time.monotonic()
        among: list[float] = []
        cpu_seconds = 0.0
        for cycle in range(1, cycles + 1):
            burden = Burden(server, idle, slow, endless)
            used = _cpu_seconds(server)
            among += Producer(server, records, cycle * records).written().waited
            cpu_seconds += _cpu_seconds(server) - used
            grown = max(grown, server.memory_bytes())
            burden.vanish()
        seconds = time.monotonic() - began
        written = (cycles + 1) * records
        eventually(lambda: len(reader.values) >= written, 60)
        left = server.memory_bytes()
        log = server.log()
        assert server.stop() == 0
        reader.join(30)
    return Survived(
        cycles=cycles,
        seconds=seconds,
        records=written,
        alone_ms=_told(alone),
        among_ms=_told(among),
        grown_bytes=grown - before,
        cpu_seconds=cpu_seconds,
        left_bytes=left - before,
        lost=int(reader.values != list(range(written))),
        tracebacks=log.count("Traceback"),
    )


def _told(waited: list[float]) -> str:
    cuts = quantiles(waited, n=100)
    return f"{cuts[49] * 1000:.2f} / {cuts[98] * 1000:.2f}"


def _cpu_seconds(server: ServerProcess) -> float:
    with open(f"/proc/{server.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    given = parser.parse_args()
    survived = run(given.cycles)
    print(survived)  # noqa: T201
    return 0 if survived.ok else 1


if __name__ == "__main__":
    sys.exit(main())
