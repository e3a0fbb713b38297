"""DescribeUserScramCredentials, API key 50."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, STRING, Array


@struct
class UserName:
    name: str = field(STRING)


@message(api_key=50, kind="request", versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = field(Array(UserName), nullable_since=0)


@struct
class CredentialInfo:
    mechanism: int = field(INT8)
    iterations: int = field(INT32)


@struct
class DescribeUserScramCredentialsResult:
    user: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    credential_infos: list[CredentialInfo] = field(Array(CredentialInfo))


@message(api_key=50, kind="response", versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    results: list[DescribeUserScramCredentialsResult] = field(Array(DescribeUserScramCredentialsResult))
