"""Records with trace contexts, and the spans that a broker keeps of them."""

from __future__ import annotations

from kbroker.broker import Broker
from kbroker.observability.traces.spans import Span, unpacked
from kbroker.protocol.records import Record, build_batch
from tests.handlers.conftest import NOW_MS, Cluster

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


def traceparent(trace: str = TRACE, parent: str = PARENT, flags: str = "01") -> tuple[str, bytes]:
    return "traceparent", f"00-{trace}-{parent}-{flags}".encode()


def record(*headers: tuple[str, bytes | None], key: bytes | None = b"key") -> Record:
    return Record(NOW_MS, key, b"value", headers)


def produce(cluster: Cluster, topic: str, *records: Record, codec: int = 0) -> int:
    batch = build_batch(records, codec=codec)
    log = cluster.broker.find_log(topic, 0)
    return log.append_as_leader(memoryview(bytearray(batch)), cluster.now_ms).base_offset


def spans(broker: Broker) -> list[Span]:
    ring = broker.traces.caught_up()
    return [unpacked(data) for _, data in ring.result().entries()]


def told(broker: Broker) -> list[tuple[str, int]]:
    return [(span.event, span.offset) for span in spans(broker)]
