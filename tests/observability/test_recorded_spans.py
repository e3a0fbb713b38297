"""What happens to records of a traced topic, and the spans that it leaves."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.records.compression import ZSTD
from tests.handlers.config_resources import SET, TOPIC, alter
from tests.handlers.conftest import Cluster
from tests.handlers.share_members import ACCEPT, GROUP, REJECT, RELEASE, ShareMember, initialize
from tests.observability.traces import PARENT, TRACE, produce, record, spans, told, traceparent


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
    cluster.create("orders")
    for sampling in ("parent", "off"):
        produce(cluster, "orders", record(traceparent()))
        alter(cluster, (TOPIC, "orders", [("kbroker.trace.sampling", SET, sampling)]))
    produce(cluster, "orders", record(traceparent()))
    assert told(cluster.broker) == [("received", 1), ("stored", 1)]


@pytest.mark.parametrize("value", ["on", "1.5", "-1", "", "0,5"])
def test_nonsense_is_no_sampling(cluster: Cluster, value: str) -> None:
    cluster.create("orders")
    (refused,) = alter(cluster, (TOPIC, "orders", [("kbroker.trace.sampling", SET, value)])).responses
    assert refused.error_code == ErrorCode.INVALID_CONFIG


def test_a_default_of_the_broker_is_for_all_topics() -> None:
    cluster = Cluster({"node.id": "1", "kbroker.trace.sampling": "parent"})
    cluster.create("orders")
    produce(cluster, "orders", record(traceparent()))
    assert told(cluster.broker) == [("received", 0), ("stored", 0)]


def test_each_fetch_of_a_record_leaves_a_span(cluster: Cluster) -> None:
    trace(cluster)
    produce(cluster, "orders", record(), record(traceparent()), record(traceparent()))
    for _ in range(2):
        topics = [
            FetchTopic(
                topic="orders", partitions=[FetchPartition(0, fetch_offset=2, partition_max_bytes=1 << 20)]
            )
        ]
        cluster.send(FetchRequest(max_bytes=1 << 20, topics=topics), 12)
    received, *_, first, second = [span for span in spans(cluster.broker) if span.offset == 2]
    assert (first.event, second.event) == ("fetched", "fetched")
    assert first.span_id != second.span_id
    assert first.parent_id == second.parent_id == received.span_id
    assert (first.trace_id, first.attributes) == (received.trace_id, {"client": "test"})
    assert [span for span in spans(cluster.broker) if span.event == "fetched" and span.offset != 2] == []


def test_a_share_group_leaves_what_becomes_of_its_deliveries(cluster: Cluster) -> None:
    trace(cluster)
    topic = cluster.broker.topics.get("orders")
    assert topic is not None
    initialize(cluster, topic, share_delivery_count_limit="2", share_record_lock_duration_ms="15000")
    produce(cluster, "orders", *[record(traceparent()) for _ in range(4)])
    member = ShareMember(cluster, topic)
    member.fetch(0)
    member.acknowledge({0: [(0, 0, [ACCEPT]), (1, 1, [RELEASE]), (2, 2, [REJECT])]})
    cluster.now_ms += 15_001
    cluster.broker.time_jumped()
    of = {offset: [s for s in spans(cluster.broker) if s.offset == offset][2:] for offset in range(4)}
    assert {offset: [span.event for span in each] for offset, each in of.items()} == {
        0: ["fetched", "acknowledged"],
        1: ["fetched", "released"],
        2: ["fetched", "rejected"],
        3: ["fetched", "lock-run-out"],
    }
    for fetched, outcome in of.values():
        assert outcome.parent_id == fetched.span_id
        assert outcome.attributes == {"group": GROUP, "deliveryCount": 1, "member": "one"}
        assert outcome.status == ("ok" if outcome.offset < 2 else "error")
    member.fetch(0)
    again = spans(cluster.broker)[-2:]
    assert [(span.offset, span.attributes["deliveryCount"]) for span in again] == [(1, 2), (3, 2)]


def test_a_session_that_ends_releases(cluster: Cluster) -> None:
    trace(cluster)
    topic = cluster.broker.topics.get("orders")
    assert topic is not None
    initialize(cluster, topic)
    produce(cluster, "orders", record(traceparent()))
    member = ShareMember(cluster, topic)
    member.fetch(0)
    member.disconnect()
    released = spans(cluster.broker)[-1]
    assert (released.event, released.attributes["reason"]) == ("released", "session ended")


def test_a_dead_letter_is_told_of() -> None:
    cluster = Cluster({"node.id": "1", "errors.deadletterqueue.auto.create.topics.enable": "true"})
    trace(cluster)
    topic = cluster.broker.topics.get("orders")
    assert topic is not None
    initialize(cluster, topic, errors_deadletterqueue_topic_name="dlq.dead")
    produce(cluster, "orders", record(traceparent()))
    member = ShareMember(cluster, topic)
    member.fetch(0)
    member.acknowledge({0: [(0, 0, [REJECT])]})
    rejected, letter = sorted(spans(cluster.broker)[-2:], key=lambda span: span.event, reverse=True)
    assert (rejected.event, letter.event) == ("rejected", "dead-lettered")
    assert letter.attributes["reason"] == "reject"
    assert letter.attributes["deadLetterTopic"] == "dlq.dead"


def test_nothing_of_a_record_changes(cluster: Cluster) -> None:
    trace(cluster, "1")
    cluster.create("plain")
    for topic in ("orders", "plain"):
        produce(cluster, topic, record(traceparent(), ("other", None)), record(key=None))
    orders, plain = (cluster.broker.find_log(topic, 0).read(0, 1 << 20).data for topic in ("orders", "plain"))
    assert orders == plain


def test_very_many_outcomes_of_one_request_take_no_long_turn(cluster: Cluster) -> None:
    """Each second record is rejected, the others accepted: nothing of it grows with the square."""
    trace(cluster)
    topic = cluster.broker.topics.get("orders")
    assert topic is not None
    initialize(cluster, topic)
    produce(cluster, "orders", *[record(traceparent()) for _ in range(2000)])
    member = ShareMember(cluster, topic)
    member.fetch(0, max_records=2000, batch_size=2000)
    member.acknowledge({0: [(0, 1999, [ACCEPT, REJECT] * 1000)]})
    outcomes = [span.event for span in spans(cluster.broker)[-2000:]]
    assert outcomes == ["acknowledged", "rejected"] * 1000


def test_what_a_client_says_of_itself_is_cut(cluster: Cluster) -> None:
    trace(cluster)
    produce(cluster, "orders", record(traceparent(), key=b"k" * 10_000))
    log = cluster.broker.find_log("orders", 0)
    assert log.trace is not None
    log.trace.happened("fetched", 0, 0, {"client": "c" * 30_000, "deliveryCount": 1})
    *_, fetched = spans(cluster.broker)
    assert (len(str(fetched.attributes["client"])), fetched.key) == (256, b"k" * 256)
