"""RemoveRaftVoter, API key 81."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import INT16, INT32, STRING, UUID


@message(api_key=81, kind="request", versions=(0, 0), flexible=0)
class RemoveRaftVoterRequest:
    cluster_id: str | None = field(STRING, nullable_since=0)
    voter_id: int = field(INT32)
    voter_directory_id: bytes = field(UUID)


@message(api_key=81, kind="response", versions=(0, 0), flexible=0)
class RemoveRaftVoterResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
