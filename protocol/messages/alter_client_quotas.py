"""AlterClientQuotas, API key 49."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, FLOAT64, INT16, INT32, STRING, Array


@struct
class EntityData:
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable_since=0)


@struct
class OpData:
    key: str = field(STRING)
    value: float = field(FLOAT64)
    remove: bool = field(BOOL)


@struct
class RequestEntryData:
    entity: list[EntityData] = field(Array(EntityData))
    ops: list[OpData] = field(Array(OpData))


@message(api_key=49, kind="request", versions=(0, 1), flexible=1)
class AlterClientQuotasRequest:
    entries: list[RequestEntryData] = field(Array(RequestEntryData))
    validate_only: bool = field(BOOL)


@struct
class ResponseEntryData:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    entity: list[EntityData] = field(Array(EntityData))


@message(api_key=49, kind="response", versions=(0, 1), flexible=1)
class AlterClientQuotasResponse:
    throttle_time_ms: int = field(INT32)
    entries: list[ResponseEntryData] = field(Array(ResponseEntryData))
