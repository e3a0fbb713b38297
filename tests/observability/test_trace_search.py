"""Who sees which traces, and what becomes of them when topics go or there is more than there is room for."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from kbroker.observability.traces import recorder
from kbroker.observability.traces.ring import Ring
from kbroker.observability.traces.search import MOST_SPANS, Wanted, find_trace, search
from kbroker.pending import Pending
from kbroker.requests.resources import Resources
from kbroker.security.acls import AclOperation
from tests.handlers.conftest import Cluster
from tests.handlers.some_acls import AUTHORIZED, CLUSTER, TOPIC, allow
from tests.observability.traces import TRACE, produce, record, spans, told, traceparent
from tests.operations.test_auditing import Alice

OTHER = "2" * 32


class HeldBack:
    """Long requests that never get a turn."""

    def run_in_turn(self, _: Generator[Any, None, Any]) -> Pending[Any]:
        return Pending()


PARENT_SAMPLING = {"kbroker.trace.sampling": "parent"}


def create(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.broker.topics.create(name, 1, PARENT_SAMPLING, 0).result()


def done(resources: Resources, steps: Generator[Any, None, Any]) -> Any:
    found = resources.broker.long_requests.run(steps)
    return found.result() if isinstance(found, Pending) else found


def seen(resources: Resources, wanted: Wanted = Wanted(), limit: int = 100) -> list[str]:  # noqa: B008
    return [each.trace_id.hex() for each in done(resources, search(resources, wanted, limit))]


def test_spans_are_for_who_may_read_the_topic() -> None:
    cluster = Cluster(AUTHORIZED)
    create(cluster, "orders", "secret")
    produce(cluster, "secret", record(traceparent(OTHER)), record(traceparent()))
    produce(cluster, "orders", record(traceparent()))
    alice = cluster.broker.resources(Alice())
    assert seen(alice) == []
    allow(cluster, AclOperation.READ, TOPIC, "orders")
    assert seen(alice) == [TRACE]
    assert seen(alice, Wanted(topic="secret")) == []
    assert {span.topic for span in done(alice, find_trace(alice, bytes.fromhex(TRACE)))} == {"orders"}
    assert done(alice, find_trace(alice, bytes.fromhex(OTHER))) == []
    (summary,) = done(alice, search(alice, Wanted(), 10))
    assert (list(summary.topics), summary.spans) == (["orders"], 2)


def test_those_of_a_deleted_topic_are_for_who_may_describe_the_cluster() -> None:
    cluster = Cluster(AUTHORIZED)
    create(cluster, "orders")
    produce(cluster, "orders", record(traceparent()))
    alice = cluster.broker.resources(Alice())
    allow(cluster, AclOperation.READ, TOPIC, "orders")
    topic = cluster.broker.topics.get("orders")
    assert topic is not None
    cluster.broker.topics.delete(topic).result()
    assert seen(alice) == []
    allow(cluster, AclOperation.DESCRIBE, CLUSTER, "kafka-cluster")
    assert seen(alice) == [TRACE]


def test_a_topic_made_again_has_nothing_of_the_old_one(cluster: Cluster) -> None:
    create(cluster, "orders")
    produce(cluster, "orders", record(traceparent()))
    topic = cluster.broker.topics.get("orders")
    assert topic is not None
    cluster.broker.topics.delete(topic).result()
    create(cluster, "orders")
    produce(cluster, "orders", record())
    trace = cluster.broker.find_log("orders", 0).trace
    assert trace is not None
    trace.happened("fetched", 0, 0, {})
    assert told(cluster.broker) == [("received", 0), ("stored", 0)]


def test_the_newest_come_first_and_no_more_than_asked(cluster: Cluster) -> None:
    create(cluster, "orders")
    for number in range(1, 10):
        produce(cluster, "orders", record(traceparent(f"{number:032x}")))
    trace = cluster.broker.find_log("orders", 0).trace
    assert trace is not None
    trace.happened("fetched", 2, 2, {"client": "c"})
    assert [int(each, 16) for each in seen(cluster.broker.own_resources, limit=3)] == [3, 9, 8]
    assert [int(each, 16) for each in seen(cluster.broker.own_resources, Wanted(event="fetched"))] == [3]


def test_of_a_trace_of_very_many_records_the_newest_spans_are_told(cluster: Cluster) -> None:
    create(cluster, "orders")
    produce(cluster, "orders", *[record(traceparent()) for _ in range(3 * MOST_SPANS)])
    found = done(cluster.broker.own_resources, find_trace(cluster.broker.own_resources, bytes.fromhex(TRACE)))
    assert len(found) == MOST_SPANS
    assert found[-1].offset == 3 * MOST_SPANS - 1


def test_what_nobody_has_time_for_is_counted(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_MOST_WAITING_BYTES", 1000)
    create(cluster, "orders")
    produce(cluster, "orders", *[record(traceparent()) for _ in range(100)])
    produce(cluster, "orders", record(traceparent()))
    assert cluster.broker.traces.dropped == 100
    assert told(cluster.broker) == [("received", 100), ("stored", 100)]
    assert cluster.broker.find_log("orders", 0).log_end_offset == 101


def test_what_fails_with_one_batch_leaves_the_order_of_the_others(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(cluster, "orders")
    broker = cluster.broker
    broker.traces.caught_up().result()
    monkeypatch.setattr(broker.traces, "_long_requests", HeldBack())
    produce(cluster, "orders", record(traceparent()))
    trace = broker.find_log("orders", 0).trace
    assert trace is not None
    trace.happened("no such event", 0, 0, {})  # it cannot be packed
    produce(cluster, "orders", record(traceparent()))
    trace.happened("fetched", 1, 1, {"client": "c"})
    monkeypatch.undo()
    broker.traces._go_on()
    assert told(broker)[2:] == [("received", 1), ("stored", 1), ("fetched", 1)]


def test_where_spans_have_no_place_records_have_one(cluster: Cluster) -> None:
    def no_ring() -> Ring:
        raise RuntimeError("no ring")

    broker = cluster.broker
    cluster.broker.traces = recorder.Recorder(
        no_ring, broker.long_requests, broker.worker, lambda: cluster.now_ms
    )
    create(cluster, "orders")
    for _ in range(3):
        produce(cluster, "orders", record(traceparent()))
    assert broker.find_log("orders", 0).log_end_offset == 3
    with pytest.raises(RuntimeError, match="no place"):
        seen(broker.own_resources)
    assert broker.traces.close().done


def test_after_a_restart_events_find_the_records_of_before(cluster: Cluster) -> None:
    create(cluster, "orders")
    produce(cluster, "orders", *[record(traceparent()) if n % 3 == 0 else record() for n in range(9)])
    ring = cluster.broker.traces.caught_up().result()
    again = recorder.Recorder(
        lambda: ring,
        cluster.broker.long_requests,
        cluster.broker.worker,
        lambda: cluster.now_ms,
    )
    again.trace_of(cluster.broker.find_log("orders", 0), "parent").happened("fetched", 1, 7, {"client": "c"})
    assert [span.offset for span in spans(cluster.broker) if span.event == "fetched"] == [3, 6]
