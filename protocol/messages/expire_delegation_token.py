"""ExpireDelegationToken, API key 40."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import BYTES, INT16, INT32, INT64


@message(api_key=40, kind="request", versions=(0, 2), flexible=2)
class ExpireDelegationTokenRequest:
    hmac: bytes = field(BYTES)
    expiry_time_period_ms: int = field(INT64)


@message(api_key=40, kind="response", versions=(0, 2), flexible=2)
class ExpireDelegationTokenResponse:
    error_code: int = field(INT16)
    expiry_timestamp_ms: int = field(INT64)
    throttle_time_ms: int = field(INT32)
