"""Produce requests that are like one before them, answered without decoding them again.

A producer sends the same request again and again: only the correlation id, the length of the batch and the
batch differ. All else is compared as bytes with a request of this connection that was decoded and answered;
if it is the same, so is what it means: the batch goes to the same log, and the answer differs from the
earlier one in the correlation id and the offsets only. What is known of a request is called its lane.

Invariants:
- A lane takes a request whole or not at all: None means that nothing happened, and that the request is to be
  decoded. So every judgement about an unusual request stays with the handler.
- A lane is learned only from a request with one batch for one partition, not transactional, that was answered
  at once and without an error. A deleted topic's log is not found under its id any more, which ends its lane.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Never, cast

from kbroker.pending import Pending, mapped
from kbroker.protocol import topic_ids
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kbroker.protocol.records.batch import (
    LOG_OVERHEAD,
    LOW_ATTRIBUTES_POSITION,
    MAGIC,
    TRANSACTIONAL_BIT,
    unpack_length_magic_attributes,
)
from kbroker.protocol.records.codec import NO_TIMESTAMP
from kbroker.protocol.types import ProtocolError
from kbroker.protocol.wire import finish_uvarint, uvarint
from kbroker.requests.answers import Buffers, Deferred
from kbroker.requests.lanes import NO_RUN, Run
from kbroker.requests.produce_results import appended_at, refused, when_durable
from kbroker.storage.interface import TakesLong

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.request import Request
    from kbroker.storage.interface import LocalLog

_PRODUCE = 0
_FIRST_VERSION = 7  # the first in which every codec may be used; the offsets of an answer stand together
_FIRST_FLEXIBLE = 9
_MOST_LANES = 128  # of a connection
_MOST_SHAPE_BYTES = 512  # what is remembered of a request, names of client and topic among it
_PATIENCE = 16  # so many requests in a row without a lane make it look whether to begin anew
_SHAPE = 8  # of a frame: behind API key, version and correlation id
_LONGEST_RUN = 64  # far below what one write takes (IOV_MAX)
_LEAST_BYTES = 64  # of a length and a batch
_NO_TAGS = bytes(3)  # behind a flexible request's batch: of the partition, the topic and the request
_LENGTH = struct.Struct(">i")
_OFFSETS = struct.Struct(">qqq")  # of an answer: base offset, append time, log start
_RECOGNISABLE = (0x1122334455667788, 0x2233445566778899, 0x33445566778899AA)


class _Lane(NamedTuple):
    log_key: tuple[bytes, int]
    name: str
    topic_id: bytes
    partition: int
    version: int
    flexible_response: bool
    pack: Callable[..., bytes]  # see _layout
    size: int
    start: bytes
    end: bytes


class RepeatedProduces:
    """The lanes of one connection. All have the batch at one position, and mostly differ in the partition."""

    __slots__ = ("_broker", "_flexible", "_lanes", "_misses", "_position", "_unpack")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lanes: dict[tuple[bytes, bytes], _Lane] = {}
        self._unpack: Callable[..., tuple[bytes, bytes, bytes]] = _split(0)  # of a view, from a position on
        self._position = 0  # where the length of the batch stands
        self._flexible = False
        self._misses = 0  # since a request was taken

    def take(self, frame: memoryview, now_ms: int) -> Buffers | Deferred | None:
        """The answer, maybe a later one; None: decode the request."""
        found = self._find(frame)
        if found is None:
            return None
        lane, correlation_id, batch = found
        log = self._broker.open_logs.get(lane.log_key)
        if log is None:
            return None
        self._misses = 0
        try:
            appended = log.append_as_leader(batch, now_ms)
        except TakesLong:
            return None
        except Exception as error:
            return _frame(lane, correlation_id, refused(lane.partition, error, log), self._broker)
        if appended.durable is not None:
            result = appended_at(lane.partition, appended)
            durable = mapped(when_durable(appended.durable, result, log), lambda _: result)
            if isinstance(durable, Pending):
                return Deferred(_RepeatedProduce(lane, correlation_id), durable, self._broker)
            return _frame(lane, correlation_id, result, self._broker)
        return [
            lane.pack(
                lane.size,
                correlation_id,
                lane.start,
                appended.base_offset,
                appended.log_append_time_ms,
                appended.log_start_offset,
                lane.end,
            )
        ]

    def take_run(self, view: memoryview, now_ms: int) -> Run:
        """Requests that came together, all for one log.

        `view` begins with the length of a whole one.
        """
        second = 4 + _LENGTH.unpack_from(view)[0]
        start, end = 4 + _SHAPE, 4 + self._position
        if view[start:end] != view[second + start : second + end]:
            return NO_RUN  # there is no second one, or it is for another partition
        lane: _Lane | None = None
        head = shape = b""
        batches: list[memoryview] = []
        correlation_ids: list[bytes] = []
        position, end = 0, len(view)
        while end - position > 4 and len(batches) < _LONGEST_RUN:
            start = position + 4
            stop = start + _LENGTH.unpack_from(view, position)[0]
            if not start + self._position + _LEAST_BYTES <= stop <= end:
                break
            of_head, correlation_id, of_shape = self._unpack(view, start)
            if lane is None:
                head, shape = of_head, of_shape
                lane = self._lanes.get((head, shape))
                if lane is None:
                    break
            elif of_shape != shape or of_head != head:
                break
            batch = self._batch(view, start + self._position, stop)
            if batch is None:
                break
            batches.append(batch)
            correlation_ids.append(correlation_id)
            position = stop
        if lane is None or len(batches) < 2:
            return NO_RUN
        # Only a log that is local answers at once, and only such an answer makes a lane.
        log = cast("LocalLog | None", self._broker.open_logs.get(lane.log_key))
        offsets = None if log is None else log.append_run(batches, now_ms)
        if log is None or offsets is None:
            return NO_RUN
        self._misses = 0
        log_start = log.log_start_offset
        answers = [
            lane.pack(lane.size, correlation_id, lane.start, offset, NO_TIMESTAMP, log_start, lane.end)
            for correlation_id, offset in zip(correlation_ids, offsets, strict=True)
        ]
        return Run(b"".join(answers), position, len(answers))

    def _find(self, frame: memoryview) -> tuple[_Lane, bytes, memoryview] | None:
        """Of a request that a lane takes: the lane, the correlation id and the batch."""
        position = self._position
        if len(frame) < position + _LEAST_BYTES:
            return None
        head, correlation_id, shape = self._unpack(frame)
        lane = self._lanes.get((head, shape))
        if lane is None:
            return None
        batch = self._batch(frame, position, len(frame))
        if batch is None:
            return None
        length, magic, attributes = unpack_length_magic_attributes(batch)
        if length + LOG_OVERHEAD != len(batch) or magic != MAGIC or attributes & TRANSACTIONAL_BIT:
            return None
        return lane, correlation_id, batch

    def _batch(self, view: memoryview, position: int, stop: int) -> memoryview | None:
        """What stands between its length, at `position`, and the end of its request at `stop`."""
        if not self._flexible:
            (size,) = _LENGTH.unpack_from(view, position)
            return view[position + 4 : stop] if position + 4 + size == stop else None
        size = view[position]
        position += 1
        if size > 0x7F:
            try:
                size, position = finish_uvarint(view, position, size)
            except ProtocolError:
                return None
        end = position + size - 1
        return view[position:end] if view[end:stop] == _NO_TAGS else None

    def learn(
        self, frame: memoryview, request: Request, answer: ProduceResponse | Pending[ProduceResponse]
    ) -> None:
        """A request that was decoded, and how it was answered; something is learned if that was at once."""
        if isinstance(answer, Pending):
            return
        self._misses += 1
        full = len(self._lanes) >= _MOST_LANES
        if full and self._misses % _PATIENCE:
            return
        version = request.endpoint.version
        if version < _FIRST_VERSION or len(answer.responses) != 1:
            return
        (topic,) = request.body.topic_data
        results = answer.responses[0].partition_responses
        if len(results) != 1 or results[0].error_code != ErrorCode.NONE:
            return
        (data,) = topic.partition_data
        if data.records[LOW_ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT:
            return
        flexible = version >= _FIRST_FLEXIBLE
        length = uvarint(len(data.records) + 1) if flexible else _LENGTH.pack(len(data.records))
        end = len(frame) - (len(_NO_TAGS) if flexible else 0)
        position = end - len(data.records) - len(length)
        if position > _MOST_SHAPE_BYTES or frame[position : position + len(length)] != length:
            return
        if any(frame[end:]):  # tagged fields, or bytes behind the request
            return
        elsewhere = position != self._position or flexible != self._flexible
        if elsewhere or full:
            patience = _PATIENCE if elsewhere else _PATIENCE * _MOST_LANES
            if self._lanes and self._misses < patience:
                return
            self._misses = 0
            self._lanes.clear()
            self._position, self._flexible, self._unpack = position, flexible, _split(position)
        head, _, shape = self._unpack(frame)
        if (head, shape) not in self._lanes:
            self._lanes[head, shape] = self._lane(request, topic.name, topic.topic_id, data.index)

    def _lane(self, request: Request, name: str, topic_id: bytes, partition: int) -> _Lane:
        version, topics = request.endpoint.version, self._broker.topics
        topic = topics.get_by_id(topic_id) if version >= topic_ids.PRODUCE_SINCE else topics.get(name)
        assert topic is not None  # the request was answered without an error
        example = PartitionProduceResponse(partition, ErrorCode.NONE, *_RECOGNISABLE)
        answer = encode_bytes(ProduceResponse([TopicProduceResponse(name, topic_id, [example])]), version)
        start, end = answer.split(_OFFSETS.pack(*_RECOGNISABLE))
        if request.endpoint.flexible_response:
            start = b"\0" + start  # the header's tagged fields: none
        layout = _layout(len(start), len(end))
        return _Lane(
            (topic.topic_id, partition),
            name,
            topic_id,
            partition,
            version,
            request.endpoint.flexible_response,
            layout.pack,
            layout.size - 4,
            start,
            end,
        )


def _split(position: int) -> Callable[..., tuple[bytes, bytes, bytes]]:
    """Takes a frame's start apart: API key and version, correlation id, and the rest up to `position`."""
    return struct.Struct(f"4s4s{max(position - 8, 0)}s").unpack_from


@lru_cache(64)
def _layout(start: int, end: int) -> struct.Struct:
    """Of an answer: size, correlation id, what follows up to the offsets, these, and what is behind them."""
    return struct.Struct(f">i4s{start}sqqq{end}s")


class _RepeatedProduce:
    """A request that a lane took and that waits for the disk, as far as it takes to answer it."""

    __slots__ = ("_correlation_id", "_lane")

    waits_for_others = False

    def __init__(self, lane: _Lane, correlation_id: bytes) -> None:
        self._lane = lane
        self._correlation_id = correlation_id

    def may_overlap(self, answer: Pending[PartitionProduceResponse]) -> bool:
        return True

    def framed(self, answer: PartitionProduceResponse, broker: Broker) -> Buffers:
        return _frame(self._lane, self._correlation_id, answer, broker)

    def failed(self, error: BaseException) -> Never:
        raise error


def _frame(lane: _Lane, correlation_id: bytes, result: PartitionProduceResponse, broker: Broker) -> Buffers:
    if result.error_code:
        broker.traffic.by_key[_PRODUCE].errors[int(result.error_code)] += 1
    response = ProduceResponse([TopicProduceResponse(lane.name, lane.topic_id, [result])])
    header = correlation_id + b"\0" if lane.flexible_response else correlation_id
    body = encode_bytes(response, lane.version)
    return [_LENGTH.pack(len(header) + len(body)) + header + body]
