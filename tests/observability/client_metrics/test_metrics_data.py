"""What OpenTelemetry writes, read by hand."""

from __future__ import annotations

import math
import struct
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Histogram, Metric, NumberDataPoint

from kbroker.observability.client_metrics.metrics_data import Point, Resource, Unread, read
from kbroker.observability.protobuf import InvalidProtobuf, attributes, message
from tests.observability.client_metrics.pushed import counter, gauge, key_values, metrics_data

NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
VALUES = st.one_of(TEXTS, st.integers(-(2**63), 2**63 - 1), st.booleans())


def found(data: bytes) -> list[object]:
    return [step for step in read(data) if step is not None]


def test_gauges_sums_and_the_resource_are_read() -> None:
    data = metrics_data(
        gauge("a.rate", 1.5, topic="t", node=3, share=0.25, on=True),
        counter("a.total", 7),
        counter("b.total", 2.0, delta=True),
        client_rack="r1",
    )
    assert found(data) == [
        Resource({"client_rack": "r1"}),
        Point("a.rate", False, False, {"topic": "t", "node": "3", "share": "0.25", "on": "true"}, 1.5),
        Point("a.total", True, False, {}, 7),
        Point("b.total", True, True, {}, 2.0),
    ]


@given(TEXTS, NUMBERS, st.dictionaries(TEXTS, VALUES, max_size=4), st.booleans(), st.booleans())
def test_every_number_is_read_as_it_was_written(
    name: str, value: float, attributes: dict[str, object], is_counter: bool, delta: bool
) -> None:
    made = gauge(name, value)
    if is_counter:
        made = counter(name, value, delta=delta)
    (made.sum if is_counter else made.gauge).data_points[0].attributes.extend(key_values(attributes))
    texts = {
        each: str(held).lower() if isinstance(held, bool) else str(held) for each, held in attributes.items()
    }
    assert found(metrics_data(made))[1:] == [Point(name, is_counter, is_counter and delta, texts, value)]


def test_a_histogram_is_named_and_not_read() -> None:
    data = metrics_data(Metric(name="h", histogram=Histogram()), gauge("g", 1))
    assert found(data)[1:] == [Unread("h"), Point("g", False, False, {}, 1)]


def test_a_point_without_a_value_is_none() -> None:
    without = Metric(
        name="g", gauge=Gauge(data_points=[NumberDataPoint(flags=1, as_int=1), NumberDataPoint()])
    )
    assert found(metrics_data(without))[1:] == []


def test_not_a_number_is_one() -> None:
    (_, point) = found(metrics_data(gauge("g", math.nan)))
    assert isinstance(point, Point)
    assert math.isnan(point.value)


@pytest.mark.parametrize(
    "data",
    [
        b"metrics",
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0a\x02\x12\x05",
        b"\x02\x00",
        b"\x0b",
        b"\x08" + b"\xff" * 11,
        message(1, attributes(1, {"name": 1}) * 0 + message(1, message(1, b"") * 300)),
    ],
)
def test_what_is_no_metrics_data_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidProtobuf):
        found(data)


@given(st.binary(max_size=200))
def test_nothing_else_is_raised_whatever_comes(data: bytes) -> None:
    try:
        found(data)
        found(message(1, message(2, message(2, data))))
    except InvalidProtobuf:
        pass


def test_each_step_is_short_however_much_comes() -> None:
    """Also of fields that are nothing to us, and of points that have no value."""
    many = 100_000
    point_without_value = message(1, b"")
    for data in (
        b"\x10\x00" * many,
        message(1, b"\x18\x00" * many),
        message(1, message(2, b"\x18\x00" * many)),
        message(1, message(2, message(2, message(5, point_without_value * many)))),
        message(1, message(2, message(2, message(7, point_without_value * many)))),
    ):
        assert sum(1 for _ in islice(read(data), 1000)) == 1000


def test_doubles_of_another_size_are_no_values() -> None:
    point = message(4, struct.pack("<f", 1.0))
    assert found(message(1, message(2, message(2, message(5, message(1, point)))))) == []
