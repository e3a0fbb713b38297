"""ListConfigResources, API key 74."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, STRING, Array


@message(api_key=74, kind="request", versions=(0, 1), flexible=0)
class ListConfigResourcesRequest:
    resource_types: list[int] = field(Array(INT8), since=1)


@struct
class ConfigResource:
    resource_name: str = field(STRING)
    resource_type: int = field(INT8, since=1, default=16, ignorable=True)


@message(api_key=74, kind="response", versions=(0, 1), flexible=0)
class ListConfigResourcesResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    config_resources: list[ConfigResource] = field(Array(ConfigResource))
