"""CreateAcls, API key 30."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, STRING, Array


@struct
class AclCreation:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    resource_pattern_type: int = field(INT8, since=1, default=3)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@message(api_key=30, kind="request", versions=(0, 3), flexible=2)
class CreateAclsRequest:
    creations: list[AclCreation] = field(Array(AclCreation))


@struct
class AclCreationResult:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)


@message(api_key=30, kind="response", versions=(0, 3), flexible=2)
class CreateAclsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[AclCreationResult] = field(Array(AclCreationResult))
