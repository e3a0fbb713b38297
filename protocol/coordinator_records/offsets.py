"""Record type 1: a committed offset. Type 0, the same of old Kafkas, is not written any more."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import INT32, INT64, STRING, UUID, ZERO_UUID

NEWEST = 4
WITH_EXPIRY = 1
"""The only version that holds when an offset expires by itself."""


@message(api_key=1, kind="coordinator-key", versions=(0, 0))
class OffsetCommitKey:
    group: str = field(STRING)
    topic: str = field(STRING)
    partition: int = field(INT32)


@message(api_key=1, kind="coordinator-value", versions=(0, 4), flexible=4)
class OffsetCommitValue:
    offset: int = field(INT64)
    leader_epoch: int = field(INT32, since=3, default=-1, ignorable=True)
    metadata: str = field(STRING)
    commit_timestamp: int = field(INT64)
    expire_timestamp: int = field(INT64, since=1, until=1, default=-1, ignorable=True)
    topic_id: bytes = field(UUID, since=4, tag=0, default=ZERO_UUID, ignorable=True)
