"""DescribeConfigs, API key 32."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, STRING, Array


@struct
class DescribeConfigsResource:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configuration_keys: list[str] | None = field(Array(STRING), nullable_since=0)


@message(api_key=32, kind="request", versions=(0, 4), flexible=4)
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = field(Array(DescribeConfigsResource))
    include_synonyms: bool = field(BOOL, since=1)
    include_documentation: bool = field(BOOL, since=3)


@struct
class DescribeConfigsSynonym:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable_since=0)
    source: int = field(INT8)


@struct
class DescribeConfigsResourceResult:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable_since=0)
    read_only: bool = field(BOOL)
    is_default: bool = field(BOOL, until=0)
    config_source: int = field(INT8, since=1, default=-1, ignorable=True)
    is_sensitive: bool = field(BOOL)
    synonyms: list[DescribeConfigsSynonym] = field(Array(DescribeConfigsSynonym), since=1, ignorable=True)
    config_type: int = field(INT8, since=3, ignorable=True)
    documentation: str | None = field(STRING, since=3, nullable_since=3, ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[DescribeConfigsResourceResult] = field(Array(DescribeConfigsResourceResult))


@message(api_key=32, kind="response", versions=(0, 4), flexible=4)
class DescribeConfigsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[DescribeConfigsResult] = field(Array(DescribeConfigsResult))
