"""OffsetCommit requests that are like one before them, taken without decoding them again.

A consumer commits the same partitions again and again: only the correlation id and the offsets differ. All
else is compared as bytes with a request of this connection that was decoded; if it is the same, so is what
it means. What is known of a request is called its lane.

Invariants:
- A lane spares decoding the request, and encoding the answer that all went well, and nothing else: the
  coordinator decides about every commit.
- A lane takes a request whole or not at all: None means that nothing happened, and that the request is to be
  decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ApiError
from kbroker.protocol.headers import RequestHeader
from kbroker.requests.answers import Buffers, Deferred
from kbroker.requests.lanes import NO_RUN, Run
from kbroker.requests.request import Request

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.offsets.commit_grouping import CommitErrors
    from kbroker.pending import Pending
    from kbroker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from kbroker.requests.resources import Resources

_MOST_LANES = 4  # of a connection
_MOST_BYTES = 2048  # of a request that is remembered
_PATIENCE = 16  # one of so many requests without a lane is learned from, the second one first
_LENGTH_AND_CORRELATION = struct.Struct(">ii")
_OFFSET = struct.Struct(">q")
_RECOGNISABLE = 0x1122334455667788

ToCommit = Callable[["Resources", "OffsetCommitRequest", int], CommitRequest]  # the number: of the version
ToResponse = Callable[["OffsetCommitRequest", int, "CommitErrors"], "OffsetCommitResponse"]


class _Lane(NamedTuple):
    unpack: Callable[[memoryview], tuple[Any, ...]]  # what stays and what differs, in turns
    fixed: tuple[bytes, ...]
    request: Request
    commit: CommitRequest
    topic_ids: list[bytes]  # where the request names its topics by them
    length: int  # of the answer that all went well
    answer: bytes  # behind its correlation id


class RepeatedCommits:
    """The lanes of one connection."""

    __slots__ = ("_broker", "_decoded", "_lanes", "_to_commit", "_to_response")

    def __init__(self, broker: Broker, to_commit: ToCommit, to_response: ToResponse) -> None:
        self._broker = broker
        self._to_commit = to_commit
        self._to_response = to_response
        self._lanes: dict[int, _Lane] = {}  # by the size of the request
        self._decoded = 0

    def take(self, frame: memoryview, now_ms: int) -> Buffers | Deferred | None:
        """The answer, maybe a later one; None: decode the request."""
        lane = self._lanes.get(len(frame))
        if lane is None:
            return None
        parts = lane.unpack(frame)
        if parts[::2] != lane.fixed:
            return None
        for topic_id in lane.topic_ids:
            if self._broker.topics.get_by_id(topic_id) is None:
                return None
        commit = lane.commit
        commit.offsets = [
            NewOffset(new.topic, new.partition, offset, new.leader_epoch, new.metadata, new.topic_id)
            for new, offset in zip(commit.offsets, parts[3::2], strict=True)
        ]
        asked = _RepeatedCommit(lane, parts[1], self._to_response)
        try:
            committed = self._broker.groups.offsets.commit(commit, now_ms)
            answer = committed.result() if committed.done else None
        except Exception as error:
            return asked.framed(asked.failed(error), self._broker)
        return (
            Deferred(asked, committed, self._broker) if answer is None else asked.framed(answer, self._broker)
        )

    def take_run(self, view: memoryview, now_ms: int) -> Run:
        """A consumer waits for the answer to a commit: there are no two that came together."""
        return NO_RUN

    def learn(self, frame: memoryview, request: Request, answer: Any) -> None:
        """A request that was decoded, whatever its answer is or will be."""
        self._decoded += 1
        if self._decoded % _PATIENCE != 2 or len(frame) > _MOST_BYTES:
            return
        lane = self._lane(bytes(frame), request)
        if lane is not None:
            self._lanes.pop(len(frame), None)
            if len(self._lanes) == _MOST_LANES:
                del self._lanes[next(iter(self._lanes))]
            self._lanes[len(frame)] = lane

    def _lane(self, frame: bytes, request: Request) -> _Lane | None:
        if _encode(request) != frame:  # tagged fields, or bytes behind the request
            return None
        partitions = [partition for topic in request.body.topics for partition in topic.partitions]
        resources = self._broker.resources(request.context)
        try:
            commit = self._to_commit(resources, request.body, request.endpoint.version)
        except ApiError:
            return None
        if len(commit.offsets) != len(partitions):
            return None
        for partition in partitions:
            partition.committed_offset = _RECOGNISABLE
        start, *rest = _encode(request).split(_OFFSET.pack(_RECOGNISABLE))
        if len(rest) != len(partitions) or len(start) < 8:
            return None
        layout = struct.Struct(f">4si{len(start) - 8}s" + "".join(f"q{len(part)}s" for part in rest))
        (answer,) = request.frame(self._to_response(request.body, request.endpoint.version, {}))
        return _Lane(
            layout.unpack_from,
            (start[:4], start[8:], *rest),
            request,
            commit,
            [topic.topic_id for topic in request.body.topics if any(topic.topic_id)],
            len(answer) - 4,
            bytes(answer[8:]),
        )


class _RepeatedCommit:
    """A request that a lane took, as far as it takes to answer it."""

    __slots__ = ("_correlation_id", "_lane", "_to_response")

    waits_for_others = False

    def __init__(self, lane: _Lane, correlation_id: int, to_response: ToResponse) -> None:
        self._lane = lane
        self._correlation_id = correlation_id
        self._to_response = to_response

    def may_overlap(self, answer: Pending[Any]) -> bool:
        return False

    def framed(self, answer: CommitErrors | OffsetCommitResponse, broker: Broker) -> Buffers:
        lane = self._lane
        if not answer:
            return [_LENGTH_AND_CORRELATION.pack(lane.length, self._correlation_id) + lane.answer]
        if isinstance(answer, dict):
            answer = self._to_response(lane.request.body, lane.request.endpoint.version, answer)
        request = lane.request.answering(self._correlation_id)
        request.count_errors(answer, broker)
        return request.frame(answer)

    def failed(self, error: BaseException) -> Any:
        return self._lane.request.failed(error)


def _encode(request: Request) -> bytes:
    context, endpoint = request.context, request.endpoint
    header = RequestHeader(context.api_key, context.api_version, context.correlation_id, context.client_id)
    return encode_bytes(header, endpoint.header_version) + encode_bytes(request.body, endpoint.version)
