"""GetTelemetrySubscriptions, API key 71."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, STRING, UUID, Array


@message(api_key=71, kind="request", versions=(0, 0), flexible=0)
class GetTelemetrySubscriptionsRequest:
    client_instance_id: bytes = field(UUID)


@message(api_key=71, kind="response", versions=(0, 0), flexible=0)
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    client_instance_id: bytes = field(UUID)
    subscription_id: int = field(INT32)
    accepted_compression_types: list[int] = field(Array(INT8))
    push_interval_ms: int = field(INT32)
    telemetry_max_bytes: int = field(INT32)
    delta_temporality: bool = field(BOOL)
    requested_metrics: list[str] = field(Array(STRING))
