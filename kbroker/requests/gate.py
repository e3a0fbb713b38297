"""The gate: what is decided about every request before it is decoded, also about those that lanes take.

A broker without a gate lets every request pass. The gate sees the head of a request only.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kbroker.requests.apis import BY_KEY, Api

if TYPE_CHECKING:
    from kbroker.pending import Pending
    from kbroker.protocol.errors import ErrorCode

_HEAD = struct.Struct(">hhih")  # API key, version, correlation id, length of the client id


class Head(NamedTuple):
    api: Api
    version: int
    client_id: str | None


class Verdict(NamedTuple):
    """What becomes of a request that may not simply pass."""

    wait: Pending[None] | None  # it is executed, or refused, when this settles
    error: ErrorCode | None  # it is refused with this code


class Gate(Protocol):
    @property
    def is_open(self) -> bool:
        """Whether every request may pass now."""

    def judge(self, head: Head) -> Verdict | None:
        """About one request; None: it may pass."""

    def passed(self, head: Head, requests: int) -> None:
        """So many requests with this head were executed together, while it was open."""


def head_of(frame: memoryview) -> Head | None:
    """None: the frame is not a request of an API that this broker has."""
    if len(frame) < _HEAD.size:
        return None
    api_key, version, _, length = _HEAD.unpack_from(frame)
    api = BY_KEY.get(api_key)
    if api is None:
        return None
    end = _HEAD.size + max(length, 0)
    client_id = None if length < 0 else bytes(frame[_HEAD.size : end]).decode(errors="replace")
    return Head(api, version, client_id)
