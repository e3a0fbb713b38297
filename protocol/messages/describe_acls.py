"""DescribeAcls, API key 29."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, STRING, Array


@message(api_key=29, kind="request", versions=(0, 3), flexible=2)
class DescribeAclsRequest:
    resource_type_filter: int = field(INT8)
    resource_name_filter: str | None = field(STRING, nullable_since=0)
    pattern_type_filter: int = field(INT8, since=1, default=3)
    principal_filter: str | None = field(STRING, nullable_since=0)
    host_filter: str | None = field(STRING, nullable_since=0)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@struct
class AclDescription:
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@struct
class DescribeAclsResource:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8, since=1, default=3)
    acls: list[AclDescription] = field(Array(AclDescription))


@message(api_key=29, kind="response", versions=(0, 3), flexible=2)
class DescribeAclsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    resources: list[DescribeAclsResource] = field(Array(DescribeAclsResource))
