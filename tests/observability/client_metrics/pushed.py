"""What clients push, made by OpenTelemetry's own protobuf classes."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource


def gauge(name: str, value: float, **attributes: Any) -> Metric:
    return Metric(name=name, gauge=Gauge(data_points=[point(value, **attributes)]))


def counter(name: str, value: float, *, delta: bool = False, **attributes: Any) -> Metric:
    temporality = AGGREGATION_TEMPORALITY_DELTA if delta else AGGREGATION_TEMPORALITY_CUMULATIVE
    points = [point(value, **attributes)]
    return Metric(
        name=name, sum=Sum(data_points=points, aggregation_temporality=temporality, is_monotonic=True)
    )


def point(value: float, **attributes: Any) -> NumberDataPoint:
    number = {"as_int": value} if isinstance(value, int) else {"as_double": value}
    return NumberDataPoint(attributes=key_values(attributes), time_unix_nano=1, **number)  # type: ignore[arg-type]


def key_values(attributes: dict[str, Any]) -> list[KeyValue]:
    kinds = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}
    return [
        KeyValue(key=name, value=AnyValue(**{kinds[type(value)]: value}))
        for name, value in attributes.items()
    ]


def metrics_data(*metrics: Metric, **resource: Any) -> bytes:
    scope = ScopeMetrics(metrics=metrics)
    data = ResourceMetrics(resource=Resource(attributes=key_values(resource)), scope_metrics=[scope])
    return MetricsData(resource_metrics=[data]).SerializeToString()
