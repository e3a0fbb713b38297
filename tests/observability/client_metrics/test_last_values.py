"""The last values of clients: what replaces them, what bounds them, when they are forgotten."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Histogram, Metric

from kbroker.observability.client_metrics.last_values import LastValues
from kbroker.observability.protobuf import InvalidProtobuf, message
from kbroker.telemetry.clients import Push
from tests.observability.client_metrics.pushed import counter, gauge, metrics_data
from tests.support.steps import result_of

INTERVAL_MS = 30_000
ONE, TWO = b"1" * 16, b"2" * 16


class Clients:
    def __init__(self, most: int = 100) -> None:
        self.now_ms = 0
        self.values = LastValues(lambda: most)

    def push(self, client: bytes, *metrics: Metric, terminating: bool = False, **resource: str) -> None:
        self.push_bytes(client, metrics_data(*metrics, **resource), terminating=terminating)

    def push_bytes(self, client: bytes, data: bytes, *, terminating: bool = False) -> None:
        attributes = {"client_id": f"c{client[:1].decode()}"}
        push = Push(client, attributes, data, INTERVAL_MS, terminating, self.now_ms)
        result_of(self.values.take(push))

    def told(self) -> dict[str, dict[str, float]]:
        """By name and labels, without those that name the client."""
        self.values.expire(self.now_ms)
        told = {
            family.name: {
                f"{client[:1].decode()}{_further(labels)}": value
                for client, series in family.by_client.items()
                for labels, value in series.items()
            }
            for family in self.values.families()
        }
        assert sum(map(len, told.values())) == self.values.series
        return told


def _further(labels: str) -> str:
    return labels.partition(",client_id=")[2].partition('"')[2].partition('"')[2].removesuffix("}")


@pytest.fixture
def clients() -> Clients:
    return Clients()


def test_series_have_names_of_prometheus_and_the_labels_of_their_client(clients: Clients) -> None:
    clients.push(
        ONE,
        counter("org.apache.kafka.producer.record.send.total", 5, topic="t"),
        gauge("org.apache.kafka.producer.record-queue.time/max", 1.5, **{"node.id": 1, "0": "x"}),
        gauge("of.my.own", 2, client_id="other", client_instance_id="other"),
    )
    assert clients.told() == {
        "kbroker_client_producer_record_send_total": {'1,topic="t"': 5},
        "kbroker_client_producer_record_queue_time_max": {'1,_0="x",node_id="1"': 1.5},
        "kbroker_client_of_my_own": {"1": 2},
    }
    (labels,) = clients.values.families()[-1].by_client[ONE]
    assert labels == '{client_instance_id="MTExMTExMTExMTExMTExMQ",client_id="c1"}'


def test_what_a_client_says_of_itself_is_told_of_it(clients: Clients) -> None:
    clients.push(ONE, gauge("g", 1), client_rack="r1", group_id="g", nobody_asked="x")
    ((info, number),) = clients.values.infos()
    assert (info, number) == (("MTExMTExMTExMTExMTExMQ", "c1", "", "", "", "r1", "g", "", "", ""), 1)


def test_a_push_replaces_all_of_its_client_and_nothing_of_others(clients: Clients) -> None:
    for client in (ONE, TWO):
        clients.push(client, counter("a", 1), gauge("b", 1, x="1"), gauge("b", 2, x="2"))
    clients.push(ONE, gauge("b", 3, x="2"))
    assert clients.told() == {
        "kbroker_client_a_total": {"2": 1},
        "kbroker_client_b": {'1,x="2"': 3, '2,x="1"': 1, '2,x="2"': 2},
    }


def test_values_since_the_last_push_are_added_up(clients: Clients) -> None:
    for value in (5, 3, 4):
        clients.push(ONE, counter("a.total", value, delta=True, topic="t"))
    clients.push(TWO, counter("a.total", 1, delta=True, topic="t"))
    assert clients.told() == {"kbroker_client_a_total": {'1,topic="t"': 12, '2,topic="t"': 1}}


def test_a_push_that_is_broken_changes_nothing(clients: Clients) -> None:
    clients.push(ONE, gauge("a", 1))
    with pytest.raises(InvalidProtobuf):
        clients.push_bytes(ONE, metrics_data(gauge("a", 2)) + b"\x0a")
    assert clients.told() == {"kbroker_client_a": {"1": 1}}


def test_a_client_that_pushes_no_more_is_forgotten_after_three_intervals(clients: Clients) -> None:
    clients.push(ONE, gauge("a", 1))
    clients.push(TWO, gauge("a", 1))
    clients.now_ms = 2 * INTERVAL_MS
    clients.push(ONE, gauge("a", 2))
    clients.values.prolong(Push(b"3" * 16, {}, b"", INTERVAL_MS, False, clients.now_ms))
    clients.now_ms = 3 * INTERVAL_MS
    assert clients.told() == {"kbroker_client_a": {"1": 2}}
    clients.values.prolong(Push(ONE, {}, b"", INTERVAL_MS, False, clients.now_ms))
    clients.now_ms = 6 * INTERVAL_MS - 1
    assert clients.told() == {"kbroker_client_a": {"1": 2}}
    clients.now_ms += 1
    assert clients.told() == {}
    assert len(clients.values) == 0


def test_a_client_that_took_its_leave_is_told_of_for_a_minute(clients: Clients) -> None:
    clients.push(ONE, gauge("a", 1), terminating=True)
    clients.now_ms = 59_999
    assert clients.told() == {"kbroker_client_a": {"1": 1}}
    clients.now_ms = 60_000
    assert clients.told() == {}


def test_a_short_interval_gives_scrapes_a_minute(clients: Clients) -> None:
    result_of(clients.values.take(Push(ONE, {}, metrics_data(gauge("a", 1)), 100, False, 0)))
    clients.now_ms = 59_999
    assert clients.told() == {"kbroker_client_a": {"1": 1}}


def test_who_is_not_asked_any_more_is_forgotten(clients: Clients) -> None:
    clients.push(ONE, gauge("a", 1))
    clients.values.forget(ONE)
    clients.values.forget(ONE)
    assert (clients.told(), len(clients.values)) == ({}, 0)


def test_one_client_has_a_quarter_of_the_room_and_all_have_no_more_than_it() -> None:
    clients = Clients(most=12)
    for number in range(6):
        clients.push(b"%d" % number * 16, *(gauge(f"g{each}", 1) for each in range(5)))
    assert clients.values.series == 12
    assert len(clients.values) == 4
    assert clients.values.left_out == 4 * 2 + 2 * 5
    clients.now_ms = 3 * INTERVAL_MS  # the room of who is gone is free
    clients.push(b"9" * 16, gauge("g0", 7))
    assert clients.told() == {"kbroker_client_g0": {"9": 7}}


def test_a_metric_has_one_kind_and_the_others_are_left_out(clients: Clients) -> None:
    clients.push(ONE, counter("a.total", 1), gauge("a", 2), gauge("b_total", 3))
    clients.push(TWO, gauge("a", 4), counter("b", 5))
    assert clients.told() == {"kbroker_client_a_total": {"1": 1}, "kbroker_client_b": {"1": 3}}
    assert clients.values.left_out == 3
    clients.values.forget(ONE)
    clients.push(TWO, gauge("a", 4), counter("b", 5))
    assert clients.told() == {"kbroker_client_a": {"2": 4}, "kbroker_client_b_total": {"2": 5}}


@pytest.mark.parametrize(
    "left_out",
    [
        gauge("", 1),
        gauge("info", 1),
        counter("negative", -1),
        counter("nan", float("nan")),
        gauge("n" * 201, 1),
        gauge("long", 1, label="v" * 1000),
        Metric(name="h", histogram=Histogram()),
    ],
    ids=[
        "no name",
        "name of our own",
        "negative counter",
        "no number",
        "long name",
        "long labels",
        "histogram",
    ],
)
def test_what_cannot_be_told_is_left_out_and_counted(clients: Clients, left_out: Metric) -> None:
    clients.push(ONE, left_out, gauge("a", 1))
    assert clients.told() == {"kbroker_client_a": {"1": 1}}
    assert clients.values.left_out == 1


def test_a_push_of_very_much_is_not_read_to_its_end() -> None:
    clients = Clients(most=8)
    nothing = message(1, message(2, message(2, b"") * 100_000))
    clients.push_bytes(ONE, metrics_data(gauge("a", 1)) + nothing + metrics_data(gauge("b", 1)))
    assert clients.told() == {"kbroker_client_a": {"1": 1}}
    assert clients.values.left_out == 1
