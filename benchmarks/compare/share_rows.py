"""Share groups: records in and done, how soon the first one comes, what an acknowledgement takes."""

from __future__ import annotations

import statistics

from benchmarks.compare import java_loads, share_loads
from benchmarks.compare.brokers import Broker, Meter
from benchmarks.compare.measures import Load, Numbers, Row, new_topic

_SIZE = 1024
_ACKNOWLEDGED = 5_000


def _consume(members: int, partitions: int, records: int) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(1000, int(records * scale))
        topic = new_topic(broker, partitions)
        java_loads.produce(broker, topic, count, _SIZE)
        group = share_loads.new_group(broker, topic, partitions)
        meter = Meter(broker)
        rate = share_loads.consume(broker, topic, group, count, members)
        return {"records_per_s": rate, "cpu_us_per_record": meter.cpu_seconds / count * 1e6}

    return run


def _first_record(broker: Broker, scale: float) -> Numbers:
    topic = new_topic(broker, 1)
    java_loads.produce(broker, topic, 10, _SIZE)
    return {"first_record_s": share_loads.first_record(broker, topic, share_loads.group_from_start(broker))}


def _acknowledgements(broker: Broker, scale: float) -> Numbers:
    count = max(200, int(_ACKNOWLEDGED * scale))
    topic = new_topic(broker, 1)
    java_loads.produce(broker, topic, 2 * count, 100, batch_size="4096")
    group = share_loads.new_group(broker, topic, 1)
    meter = Meter(broker)
    took = share_loads.acknowledge(broker, topic, group, count)
    percentiles = statistics.quantiles(took, n=100)
    return {
        "acknowledge_p50_ms": percentiles[49],
        "acknowledge_p99_ms": percentiles[98],
        "cpu_us_per_record": meter.cpu_seconds / count * 1e6,
    }


ROWS: tuple[Row, ...] = (
    Row("share group: first record", _first_record),
    Row("share group: share-consumer-perf 1 KiB, 1 member", _consume(1, 1, 500_000)),
    Row("share group: share-consumer-perf 1 KiB, 10 members", _consume(10, 4, 500_000)),
    Row("share group: one record at a time", _acknowledgements),
)
