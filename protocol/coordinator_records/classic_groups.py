"""Record type 2: a group of the classic protocol, with all its members."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BYTES, INT32, INT64, STRING, Array

WRITTEN = 3
"""The version that Kafka 4.3 writes, though it has one more."""


@message(api_key=2, kind="coordinator-key", versions=(0, 0))
class GroupMetadataKey:
    group: str = field(STRING)


@struct
class MemberMetadata:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=3, nullable_since=3, default=None, ignorable=True)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    rebalance_timeout: int = field(INT32, since=1, default=-1, ignorable=True)
    session_timeout: int = field(INT32)
    subscription: bytes = field(BYTES)
    assignment: bytes = field(BYTES)


@message(api_key=2, kind="coordinator-value", versions=(0, 4), flexible=4)
class GroupMetadataValue:
    protocol_type: str = field(STRING)
    generation: int = field(INT32)
    protocol: str | None = field(STRING, nullable_since=0)
    leader: str | None = field(STRING, nullable_since=0)
    current_state_timestamp: int = field(INT64, since=2, default=-1, ignorable=True)
    members: list[MemberMetadata] = field(Array(MemberMetadata))
