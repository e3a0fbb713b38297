"""PushTelemetry, API key 72."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import BOOL, BYTES, INT8, INT16, INT32, UUID


@message(api_key=72, kind="request", versions=(0, 0), flexible=0)
class PushTelemetryRequest:
    client_instance_id: bytes = field(UUID)
    subscription_id: int = field(INT32)
    terminating: bool = field(BOOL)
    compression_type: int = field(INT8)
    metrics: bytes = field(BYTES)


@message(api_key=72, kind="response", versions=(0, 0), flexible=0)
class PushTelemetryResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
