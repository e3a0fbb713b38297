"""DeleteTopics, API key 20."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, UUID, Array


@struct
class DeleteTopicState:
    name: str | None = field(STRING, nullable_since=0, default=None)
    topic_id: bytes = field(UUID)


@message(api_key=20, kind="request", versions=(0, 6), flexible=4)
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = field(Array(DeleteTopicState), since=6)
    topic_names: list[str] = field(Array(STRING), until=5, ignorable=True)
    timeout_ms: int = field(INT32)


@struct
class DeletableTopicResult:
    name: str | None = field(STRING, nullable_since=6)
    topic_id: bytes = field(UUID, since=6, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, since=5, nullable_since=5, default=None, ignorable=True)


@message(api_key=20, kind="response", versions=(0, 6), flexible=4)
class DeleteTopicsResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    responses: list[DeletableTopicResult] = field(Array(DeletableTopicResult))
