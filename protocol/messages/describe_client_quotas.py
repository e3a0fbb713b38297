"""DescribeClientQuotas, API key 48."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, FLOAT64, INT8, INT16, INT32, STRING, Array


@struct
class ComponentData:
    entity_type: str = field(STRING)
    match_type: int = field(INT8)
    match: str | None = field(STRING, nullable_since=0)


@message(api_key=48, kind="request", versions=(0, 1), flexible=1)
class DescribeClientQuotasRequest:
    components: list[ComponentData] = field(Array(ComponentData))
    strict: bool = field(BOOL)


@struct
class EntityData:
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable_since=0)


@struct
class ValueData:
    key: str = field(STRING)
    value: float = field(FLOAT64)


@struct
class EntryData:
    entity: list[EntityData] = field(Array(EntityData))
    values: list[ValueData] = field(Array(ValueData))


@message(api_key=48, kind="response", versions=(0, 1), flexible=1)
class DescribeClientQuotasResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    entries: list[EntryData] | None = field(Array(EntryData), nullable_since=0)
