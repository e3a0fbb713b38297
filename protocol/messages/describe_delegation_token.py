"""DescribeDelegationToken, API key 41."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BYTES, INT16, INT32, INT64, STRING, Array


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


@message(api_key=41, kind="request", versions=(0, 3), flexible=2)
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None = field(
        Array(DescribeDelegationTokenOwner), nullable_since=0
    )


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


@struct
class DescribedDelegationToken:
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)
    token_requester_principal_type: str = field(STRING, since=3)
    token_requester_principal_name: str = field(STRING, since=3)
    issue_timestamp: int = field(INT64)
    expiry_timestamp: int = field(INT64)
    max_timestamp: int = field(INT64)
    token_id: str = field(STRING)
    hmac: bytes = field(BYTES)
    renewers: list[DescribedDelegationTokenRenewer] = field(Array(DescribedDelegationTokenRenewer))


@message(api_key=41, kind="response", versions=(0, 3), flexible=2)
class DescribeDelegationTokenResponse:
    error_code: int = field(INT16)
    tokens: list[DescribedDelegationToken] = field(Array(DescribedDelegationToken))
    throttle_time_ms: int = field(INT32)
