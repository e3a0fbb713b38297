"""Records in and out over TLS, on brokers of their own: both have the same certificate, and are warm."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.compare import java_loads
from benchmarks.compare.brokers import BenchKafka, Broker, Meter
from benchmarks.compare.measures import GIB, Load, Numbers, Row
from compat.harness.tls import TlsKafka, TlsKbroker, java_properties, store_settings
from tests.support.certificates import Certificates

_TOPIC = "bench-tls"
_SIZE = 1024
_RECORDS = 2**19
_WARM_RECORDS = 2**17
_LARGE_BATCHES = {"batch_size": "65536", "linger_ms": "5"}


class _Kafka(TlsKafka):
    _command = BenchKafka._command


class _Secured(NamedTuple):
    """As loads see it."""

    bootstrap: str
    pid: int
    client_file: str


@contextmanager
def _with_tls(broker: Broker) -> Iterator[_Secured]:
    with tempfile.TemporaryDirectory() as directory:
        certificates = Certificates(Path(directory))
        client_file = Path(directory) / "client.properties"
        client_file.write_text(java_properties(certificates))
        settings = store_settings(certificates)
        kafka = isinstance(broker, BenchKafka)
        with _Kafka(settings, heap_mb=1024) if kafka else TlsKbroker(settings) as server:
            yield _Secured(server.tls_bootstrap, server.pid, str(client_file))


def _produce(broker: _Secured, records: int) -> Numbers:
    meter = Meter(broker)
    produced = java_loads.produce(broker, _TOPIC, records, _SIZE, **_LARGE_BATCHES)
    return {
        "records_per_s": produced.records_per_second,
        "cpu_s_per_gib": meter.cpu_seconds / (records * _SIZE / GIB),
    }


def _consume(broker: _Secured, records: int) -> Numbers:
    _produce(broker, records)
    meter = Meter(broker)
    rate = java_loads.consume(broker, _TOPIC, records, "bench-tls")
    return {"mb_per_s": rate, "cpu_s_per_gib": meter.cpu_seconds / (records * _SIZE / GIB)}


def _row(load: Callable[[_Secured, int], Numbers]) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        with _with_tls(broker) as secured:
            warm = max(1000, int(_WARM_RECORDS * scale))
            java_loads.produce(secured, _TOPIC, warm, _SIZE, **_LARGE_BATCHES)
            java_loads.consume(secured, _TOPIC, warm, "warm")
            return load(secured, max(1000, int(_RECORDS * scale)))

    return run


ROWS: tuple[Row, ...] = (
    Row("producer-perf 1 KiB, TLS", _row(_produce)),
    Row("consumer-perf 1 KiB, TLS", _row(_consume)),
)
