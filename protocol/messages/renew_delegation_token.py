"""RenewDelegationToken, API key 39."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import BYTES, INT16, INT32, INT64


@message(api_key=39, kind="request", versions=(0, 2), flexible=2)
class RenewDelegationTokenRequest:
    hmac: bytes = field(BYTES)
    renew_period_ms: int = field(INT64)


@message(api_key=39, kind="response", versions=(0, 2), flexible=2)
class RenewDelegationTokenResponse:
    error_code: int = field(INT16)
    expiry_timestamp_ms: int = field(INT64)
    throttle_time_ms: int = field(INT32)
