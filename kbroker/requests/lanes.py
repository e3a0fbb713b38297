"""Lanes: requests that are like an earlier one of their connection, answered without decoding them again.

Produce and OffsetCommit repeat: of a request that was decoded, a lane remembers the bytes that stay and what
they mean (repeated_produce.py, repeated_commit.py; adr/0013).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from kbroker.requests.answers import Buffers, Deferred
    from kbroker.requests.request import Request


class Run(NamedTuple):
    """Requests that came together and were executed together."""

    answers: bytes
    size_bytes: int  # of the requests, each with its length
    requests: int


NO_RUN = Run(b"", 0, 0)


class Lanes(Protocol):
    """The lanes of one connection for one API."""

    def take(self, frame: memoryview, now_ms: int) -> Buffers | Deferred | None:
        """The answer to a request that a lane takes; None: nothing happened, decode the request."""

    def take_run(self, view: memoryview, now_ms: int) -> Run:
        """The first requests of ``view``, executed together. NO_RUN: nothing happened, take the first alone.

        ``view`` begins with the length of a whole request.
        """

    def learn(self, frame: memoryview, request: Request, answer: Any) -> None:
        """A request that was decoded, and the response that it got at once, or the Pending of one."""
