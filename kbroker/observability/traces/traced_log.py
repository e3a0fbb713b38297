"""Which records of a log have spans, and what is told of them.

A log tells what happens; a queue takes it, bounded and in order, and it is looked into in turns with what
others want (recorder.py). Which records are sampled is known from their first span, for as long as the ring
has it: `offsets` and `positions`, in step, both ascending.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kbroker.observability.traces.trace_context import Sampling
from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.observability.traces.recorder import Recorder
    from kbroker.protocol.records import BatchHeader
    from kbroker.storage.interface import Assigned, Log

_FORGET_AT_ONCE = 1024


class AppendedBatch(NamedTuple):
    log: TracedLog
    batch: bytes
    header: BatchHeader
    received_ns: int
    begin_ns: int
    end_ns: int
    error: str | None
    """Why it is not acknowledged."""

    @property
    def size_bytes(self) -> int:
        return len(self.batch)


class Happened(NamedTuple):
    log: TracedLog
    event: str
    first: int
    last: int
    time_ns: int
    attributes: dict[str, str | int]

    @property
    def size_bytes(self) -> int:
        return 0


class TracedLog:
    """The LogTrace of a log."""

    def __init__(self, recorder: Recorder, log: Log, sampling: str) -> None:
        self._recorder = recorder
        self.topic = log.topic
        self.topic_id = log.topic_id
        self.partition = log.partition
        self.sampled = recorder.sampled_of(log.topic_id, log.partition)
        self.set_sampling(sampling)

    def set_sampling(self, sampling: str) -> None:
        self.sampling = Sampling(sampling)

    def begin_ns(self) -> int:
        return self._recorder.now_ns()

    def appended(
        self,
        batch: memoryview,
        header: BatchHeader,
        base_offset: int,
        times: tuple[int, int],
        durable: Pending[Assigned | None] | None,
    ) -> None:
        recorder = self._recorder
        if not recorder.has_room(len(batch)):
            recorder.dropped += header.record_count
            return
        copy = bytes(batch)
        if self.sampling.by_parent_only and not header.codec and b"traceparent" not in copy:
            return
        received_ms, begin_ns = times
        received_ns = received_ms * 1_000_000
        if begin_ns - received_ns < 1_000_000:  # within a millisecond it is not known when it came
            received_ns = begin_ns

        def stored(offset: int, error: str | None = None) -> None:
            placed = header._replace(base_offset=offset)
            end_ns = max(begin_ns, recorder.now_ns())  # the clock may be set back meanwhile
            recorder.add(AppendedBatch(self, copy, placed, received_ns, begin_ns, end_ns, error))

        def settled(done: Pending[Assigned | None]) -> None:
            try:
                assigned = done.result()
            except Exception as error:
                if base_offset >= 0:
                    stored(base_offset, str(error))
            else:
                stored(base_offset if assigned is None else assigned.base_offset)

        if durable is None:
            stored(base_offset)
        else:
            durable.then(settled)

    def happened(self, event: str, first: int, last: int, attributes: dict[str, str | int]) -> None:
        recorder = self._recorder
        if recorder.has_room(0):
            recorder.add(Happened(self, event, first, last, recorder.now_ns(), attributes))
        else:
            recorder.dropped += 1


class SampledRecords:
    """Of one partition: offsets, and where in the ring their first spans are."""

    __slots__ = ("_offsets", "_positions")

    def __init__(self) -> None:
        self._offsets = array("q")
        self._positions = array("q")

    def add(self, offset: int, position: int) -> None:
        if self._offsets and offset <= self._offsets[-1]:  # a power loss took what had these offsets
            gone = bisect_left(self._offsets, offset)
            del self._offsets[gone:], self._positions[gone:]
        self._offsets.append(offset)
        self._positions.append(position)

    def between(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Offsets and positions."""
        offset = first
        while (at := bisect_left(self._offsets, offset)) < len(self._offsets):
            offset = self._offsets[at]
            if offset > last:
                return
            yield offset, self._positions[at]
            offset += 1  # others may change it in between

    def forget_before(self, position: int) -> None:
        """Their spans were overwritten."""
        if len(self._positions) >= _FORGET_AT_ONCE and self._positions[_FORGET_AT_ONCE - 1] < position:
            gone = bisect_right(self._positions, position - 1)
            del self._offsets[:gone], self._positions[:gone]

    def __len__(self) -> int:
        return len(self._offsets)
