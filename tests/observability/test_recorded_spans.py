"""What happens to records of a traced topic, and the spans that it leaves."""

from __future__ import annotations

import pytest

from kbroker.protocol.records.compression import ZSTD
from tests.handlers.conftest import Cluster
from tests.observability.traces import PARENT, TRACE, produce, record, spans, told, traceparent

TRACED = {"kbroker.trace.sampling": "parent"}


def trace(cluster: Cluster, sampling: str = "parent") -> None:
    cluster.broker.topics.create("orders", 1, {"kbroker.trace.sampling": sampling}, 0).result()


def test_a_record_with_a_context_leaves_what_happened_to_it_in_its_trace(cluster: Cluster) -> None:
    trace(cluster)
    produce(cluster, "orders", record(), record(traceparent()))
    received, stored = spans(cluster.broker)
    assert (received.event, stored.event) == ("received", "stored")
    assert received.trace_id.hex() == stored.trace_id.hex() == TRACE
    assert received.parent_id.hex() == PARENT
    assert stored.parent_id == received.span_id
    assert (received.topic, received.partition, received.offset, received.key) == ("orders", 0, 1, b"key")
    assert received.begin_ns <= stored.begin_ns <= stored.end_ns <= received.end_ns


@pytest.mark.parametrize("sampling", ["parent", "1"])
def test_who_does_not_sample_is_obeyed(cluster: Cluster, sampling: str) -> None:
    trace(cluster, sampling)
    produce(cluster, "orders", record(traceparent(flags="00")))
    assert spans(cluster.broker) == []


def test_of_records_without_a_context_a_share_is_traced(cluster: Cluster) -> None:
    trace(cluster, "0.5")
    produce(cluster, "orders", *[record() for _ in range(400)])
    traced = {span.trace_id for span in spans(cluster.broker)}
    assert 100 < len(traced) < 300
    assert all(not any(span.parent_id) for span in spans(cluster.broker) if span.event == "received")


def test_compressed_records_are_looked_into(cluster: Cluster) -> None:
    trace(cluster)
    produce(cluster, "orders", *[record(traceparent()) for _ in range(3)], codec=ZSTD)
    assert told(cluster.broker) == [
        (event, offset) for offset in range(3) for event in ("received", "stored")
    ]


def test_a_topic_that_is_not_traced_has_nothing_of_it(cluster: Cluster) -> None:
    cluster.create("plain")
    produce(cluster, "plain", record(traceparent()))
    assert cluster.broker.find_log("plain", 0).trace is None
    assert "traces" not in cluster.broker.__dict__


def test_sampling_is_altered_while_the_broker_runs(cluster: Cluster) -> None:
    topic = cluster.create("orders")
    produce(cluster, "orders", record(traceparent()))
    broker = cluster.broker
    broker.own_resources  # noqa: B018
    broker.topics.set_configs(topic.name, {"kbroker.trace.sampling": "parent"})
