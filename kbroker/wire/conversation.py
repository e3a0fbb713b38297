"""What a client and a broker say to each other on one connection: requests, and the responses to them.

A broker answers in order, so that the next response belongs to the oldest request. Exceptions: a Produce with
acks=0 has no response; after a SaslHandshake of version 0 come tokens in frames without a header, until the
client sends a request again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from kbroker.wire.frames import (
    LEAST_REQUEST,
    REQUEST,
    RESPONSE,
    Explained,
    explain_request,
    explain_response,
    is_plausible_request,
)
from kbroker.wire.tree import Problem

_PRODUCE: Final = 0
_SASL_HANDSHAKE: Final = 17
_HIGHEST_KEY: Final = 200  # beyond any API that exists, so that it is not Kafka
_HIGHEST_VERSION: Final = 100
_MOST_PENDING: Final = 100_000

HEAD_OF_REQUEST: Final = 64  # bytes, enough to tell a request from a SASL token
HEAD_OF_RESPONSE: Final = 4


@dataclass(slots=True, eq=False)
class Asked:
    """A request that waits for its response, or a SASL token that waits for another."""

    api_key: int | None  # None: a SASL token
    version: int = 0
    correlation_id: int = 0
    client_id: str | None = None
    ended_at: float | None = None


class Conversation:
    def __init__(self) -> None:
        self._pending: deque[Asked] = deque(maxlen=_MOST_PENDING)
        self._sasl_tokens = False

    def request_began(self, head: bytes, size: int) -> Asked | None:
        """None: these bytes are no request."""
        if self._sasl_tokens:
            if not is_plausible_request(head, size):
                asked = Asked(None)
                self._pending.append(asked)
                return asked
            self._sasl_tokens = False
        if size < LEAST_REQUEST:
            return None
        key = int.from_bytes(head[:2], "big", signed=True)
        version = int.from_bytes(head[2:4], "big", signed=True)
        if not 0 <= key <= _HIGHEST_KEY or not 0 <= version <= _HIGHEST_VERSION:
            return None
        asked = Asked(key, version, int.from_bytes(head[4:8], "big", signed=True))
        self._pending.append(asked)
        self._sasl_tokens = key == _SASL_HANDSHAKE and version == 0
        return asked

    def request_ended(self, asked: Asked, frame: bytes, size: int, now: float) -> Explained:
        asked.ended_at = now
        if asked.api_key is None:
            return _token(REQUEST, size)
        explained = explain_request(frame, size)
        asked.client_id = explained.client_id
        if asked.api_key == _PRODUCE and explained.body is not None and explained.body.get("acks") == 0:
            self._forget(asked)
        return explained

    def response_began(self, head: bytes) -> Asked | None:
        """What it answers; None: nobody knows."""
        if self._pending and self._pending[0].api_key is None:
            return self._pending.popleft()
        correlation_id = int.from_bytes(head[:4], "big", signed=True)
        if not any(each.correlation_id == correlation_id for each in self._pending):
            return None
        while True:  # those before it have no response
            asked = self._pending.popleft()
            if asked.correlation_id == correlation_id:
                return asked

    def is_plausible_response(self, frame: bytes, size: int) -> bool:
        """Whether a request waits for a response of this correlation id, and these bytes can begin it."""
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        for asked in self._pending:
            if asked.api_key is not None and asked.correlation_id == correlation_id:
                return explain_response(frame, asked.api_key, asked.version, size).problem is None
        return False

    def response_ended(self, asked: Asked | None, frame: bytes, size: int) -> Explained:
        if asked is None:
            explained = Explained(RESPONSE, frame, size)
            if len(frame) >= HEAD_OF_RESPONSE:
                explained.correlation_id = int.from_bytes(frame[:4], "big", signed=True)
            explained.problem = Problem(0, "correlation_id", "no request with this correlation id was seen")
            return explained
        if asked.api_key is None:
            return _token(RESPONSE, size)
        explained = explain_response(frame, asked.api_key, asked.version, size)
        explained.client_id = asked.client_id
        return explained

    def _forget(self, asked: Asked) -> None:
        if self._pending and self._pending[-1] is asked:
            self._pending.pop()
        elif asked in self._pending:
            self._pending.remove(asked)


def _token(kind: str, size: int) -> Explained:
    """Its bytes are nobody's business."""
    return Explained(kind, b"", size, note="SASL token")
