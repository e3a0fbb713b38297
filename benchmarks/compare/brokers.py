"""The two brokers under load, as users run them: Apache Kafka with G1 and 1 GB of heap, kbroker as it is."""

from __future__ import annotations

import compileall
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from compat.harness import jars, java, server
from compat.harness.broker import KBrokerProcess
from compat.harness.kafka import LOG4J2, RealKafka

_REPOSITORY = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")

# Kafka's own start script gives these.
_SERVER_OPTIONS = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Xms1g", "-Djava.awt.headless=true")


# The files of a deleted topic go soon, and with them what was not yet written to the disk.
_BOTH = {"log.segment.delete.delay.ms": "100"}
# What the harness sets otherwise, for quick tests.
_DEFAULTS = {
    "group.initial.rebalance.delay.ms": "3000",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
}


class Clients:
    """What clients are told beside a broker's address; nothing where it is open to everybody."""

    properties_file = ""  # for Kafka's tools
    librdkafka_configs: Mapping[str, str] = {}


class BenchKafka(RealKafka, Clients):
    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__({**_DEFAULTS, **_BOTH, **(settings or {})}, heap_mb=1024)

    def another(self, settings: Mapping[str, str] | None = None) -> BenchKafka:
        return BenchKafka(settings)

    def _command(self, main_class: str, *arguments: str) -> list[str]:
        options = _SERVER_OPTIONS if main_class == "kafka.Kafka" else java.QUICK_START
        return java.command(
            main_class,
            arguments,
            classpath=jars.classpath("kafka"),
            heap_mb=self.heap_mb,
            options=options,
            properties={"log4j2.configurationFile": LOG4J2.as_uri()},
        )

    def stop_process(self) -> None:
        assert self._process is not None
        server.stop_process(self._process, grace_seconds=120)  # thousands of partitions are closed

    def start_again(self, *, seconds: float = 300, pause: float = 0.01) -> None:
        super().start_again(seconds=seconds, pause=pause)


class BenchKbroker(KBrokerProcess, Clients):
    def __init__(self, checkout: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        """``checkout``: of another version, in place of Apache Kafka."""
        super().__init__({**_BOTH, **(settings or {})}, checkout=checkout)
        if checkout is not None:
            self.name = f"kbroker in {checkout.name}"

    def another(self, settings: Mapping[str, str] | None = None) -> BenchKbroker:
        return BenchKbroker(self.checkout, settings)

    def stop_process(self) -> None:
        self.stop()

    def start_again(self) -> None:
        self.start()


Broker = BenchKafka | BenchKbroker


def compile_kbroker(checkout: Path = _REPOSITORY) -> None:
    """As pip does where it installs it: Python may have been told not to keep what it compiles."""
    for name in ("kbroker", "protocol", "storage"):
        compileall.compile_dir(checkout / name, quiet=1)


class Process(Protocol):
    @property
    def pid(self) -> int: ...


class Usage(NamedTuple):
    """What the broker's process has used so far, from /proc."""

    cpu_seconds: float
    rss_anon_bytes: int
    rss_file_bytes: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        memory = {}
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("RssAnon", "RssFile"):
                memory[name] = int(value.split()[0]) * 1024
        cpu = (int(fields[11]) + int(fields[12])) / _TICKS
        return cls(cpu, memory["RssAnon"], memory["RssFile"])


class Meter:
    """Wall time and the broker's CPU time of a stretch of work."""

    def __init__(self, broker: Process) -> None:
        self._pid = broker.pid
        self._cpu = Usage.of(self._pid).cpu_seconds
        self._wall = time.perf_counter()

    @property
    def cpu_seconds(self) -> float:
        return Usage.of(self._pid).cpu_seconds - self._cpu

    @property
    def wall_seconds(self) -> float:
        return time.perf_counter() - self._wall
