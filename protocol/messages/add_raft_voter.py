"""AddRaftVoter, API key 80."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT16, INT32, STRING, UINT16, UUID, Array


@struct
class Listener:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)


@message(api_key=80, kind="request", versions=(0, 1), flexible=0)
class AddRaftVoterRequest:
    cluster_id: str | None = field(STRING, nullable_since=0)
    timeout_ms: int = field(INT32)
    voter_id: int = field(INT32)
    voter_directory_id: bytes = field(UUID)
    listeners: list[Listener] = field(Array(Listener))
    ack_when_committed: bool = field(BOOL, since=1, default=True)


@message(api_key=80, kind="response", versions=(0, 1), flexible=0)
class AddRaftVoterResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
