"""AlterConfigs, API key 33."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, STRING, Array


@struct
class AlterableConfig:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable_since=0)


@struct
class AlterConfigsResource:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[AlterableConfig] = field(Array(AlterableConfig))


@message(api_key=33, kind="request", versions=(0, 2), flexible=2)
class AlterConfigsRequest:
    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource))
    validate_only: bool = field(BOOL)


@struct
class AlterConfigsResourceResponse:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)


@message(api_key=33, kind="response", versions=(0, 2), flexible=2)
class AlterConfigsResponse:
    throttle_time_ms: int = field(INT32)
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse))
