"""CreateDelegationToken, API key 38."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BYTES, INT16, INT32, INT64, STRING, Array


@struct
class CreatableRenewers:
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


@message(api_key=38, kind="request", versions=(0, 3), flexible=2)
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = field(STRING, since=3, nullable_since=3)
    owner_principal_name: str | None = field(STRING, since=3, nullable_since=3)
    renewers: list[CreatableRenewers] = field(Array(CreatableRenewers))
    max_lifetime_ms: int = field(INT64)


@message(api_key=38, kind="response", versions=(0, 3), flexible=2)
class CreateDelegationTokenResponse:
    error_code: int = field(INT16)
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)
    token_requester_principal_type: str = field(STRING, since=3)
    token_requester_principal_name: str = field(STRING, since=3)
    issue_timestamp_ms: int = field(INT64)
    expiry_timestamp_ms: int = field(INT64)
    max_timestamp_ms: int = field(INT64)
    token_id: str = field(STRING)
    hmac: bytes = field(BYTES)
    throttle_time_ms: int = field(INT32)
