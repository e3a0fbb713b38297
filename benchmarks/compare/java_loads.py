"""Loads made by Kafka's own performance tools, each in a JVM of its own."""

from __future__ import annotations

import re
import subprocess
from typing import NamedTuple, Protocol

from compat.harness import jars, java

_CLIENT_OPTIONS = ("-XX:+UseSerialGC", "-Xms256m")
_PRODUCED = re.compile(
    r"(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), "
    r"([\d.]+) ms avg latency, ([\d.]+) ms max latency, "
    r"(\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99.9th"
)


class Produced(NamedTuple):
    records_per_second: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


def run_tool(main_class: str, *arguments: str, timeout: float = 600) -> str:
    command = java.command(
        main_class, arguments, classpath=jars.classpath("kafka"), heap_mb=512, options=_CLIENT_OPTIONS
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise RuntimeError(f"{main_class}: {done.stdout}{done.stderr}")
    return done.stdout


class Address(Protocol):
    """What a load needs of a broker."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def properties_file(self) -> str: ...


def produce(
    broker: Address, topic: str, records: int, size: int, *, rate: int = -1, **configs: str
) -> Produced:
    """producer-perf; configs with underscores for dots."""
    properties = [f"{name.replace('_', '.')}={value}" for name, value in configs.items()]
    said = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(size)),
        *("--throughput", str(rate), "--bootstrap-server", broker.bootstrap),
        *(("--command-property", *properties) if properties else ()),
        *_secured(broker),
    )
    last = list(_PRODUCED.finditer(said))[-1]
    return Produced(float(last[2]), float(last[6]), float(last[8]), float(last[9]), float(last[5]))


def _secured(broker: Address) -> tuple[str, ...]:
    return ("--command-config", broker.properties_file) if broker.properties_file else ()


def consume(broker: Address, topic: str, records: int, group: str) -> float:
    """consumer-perf from the start; megabytes per second while fetching."""
    said = run_tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--topic", topic, "--num-records", str(records), "--bootstrap-server", broker.bootstrap),
        *("--group", group, "--timeout", "60000", "--hide-header"),
        *_secured(broker),
    )
    fields = [field.strip() for field in said.strip().splitlines()[-1].split(",")]
    if int(fields[4]) < records:
        raise RuntimeError(f"consumer-perf read {fields[4]} of {records} records")
    return float(fields[8])
