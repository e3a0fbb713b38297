"""What makes spans of what logs tell, keeps them in the ring, and hands them to exporters.

Invariants:
- Whoever tells something pays for a copy of a batch at most. All else is done in turns with long requests.
- What waits is bounded. What does not fit is counted in `dropped`, and the broker goes on.
- Spans of a partition are in the ring in the order of what happened.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING, Protocol

from kbroker.observability.traces.ring import Ring
from kbroker.observability.traces.spans import (
    ERROR,
    OK,
    Attributes,
    Span,
    kept_key,
    kept_text,
    read_head,
    status_of,
    unpacked,
)
from kbroker.observability.traces.trace_context import span_id
from kbroker.observability.traces.traced_log import AppendedBatch, Happened, SampledRecords, TracedLog
from kbroker.pending import Pending, wait
from kbroker.protocol.records import RecordError, iter_payload, payload_of
from kbroker.storage.trace_events import EVENTS, FETCHED, RECEIVED, STORED

if TYPE_CHECKING:
    from kbroker.requests.long_requests import LongRequests, Steps
    from kbroker.storage.interface import Log
    from kbroker.storage.worker import Worker

logger = logging.getLogger("kbroker.traces")

_MOST_WAITING = 10_000
_MOST_WAITING_BYTES = 16 << 20
_MOST_DECOMPRESSED_BYTES = 8 << 20  # of a batch
_ASIDE_BYTES = 16 << 10  # from here on a batch is decompressed by a worker
_RECEIVED = EVENTS.index(RECEIVED)

_Told = AppendedBatch | Happened | Pending[None]


class Exporter(Protocol):
    def add(self, span: Span) -> None: ...
    def close(self) -> Pending[None]:
        """No more come. The result comes when what waits is written or sent, or cannot be."""
        ...


class Recorder:
    def __init__(
        self,
        open_ring: Callable[[], Ring],
        long_requests: LongRequests,
        worker: Worker,
        clock: Callable[[], int],
    ) -> None:
        self._open_ring = open_ring
        self._long_requests = long_requests
        self._worker = worker
        self._clock = clock
        self._ring: Ring | None = None
        self._told: deque[_Told] = deque()
        self._told_bytes = 0
        self._works = False
        self._closed = False
        self._partitions: dict[tuple[bytes, int], SampledRecords] = {}
        self.exporters: list[Exporter] = []
        self.recorded = 0  # spans, since the start
        self.dropped = 0  # records and events that nobody had time for, since the start

    # what logs have

    def trace_of(self, log: Log, sampling: str) -> TracedLog:
        return TracedLog(self, log, sampling)

    def sampled_of(self, topic_id: bytes, partition: int) -> SampledRecords:
        found = self._partitions.get((topic_id, partition))
        if found is None:
            found = self._partitions[topic_id, partition] = SampledRecords()
        return found

    def forget(self, topic_id: bytes, partition: int) -> None:
        """The partition was deleted; its spans stay."""
        self._partitions.pop((topic_id, partition), None)

    def now_ns(self) -> int:
        """By the broker's clock, which tests let jump."""
        now_ns = time_ns()
        ahead_ms = self._clock() - now_ns // 1_000_000
        return now_ns + ahead_ms * 1_000_000 if abs(ahead_ms) > 1 else now_ns

    def has_room(self, size_bytes: int) -> bool:
        return (
            len(self._told) < _MOST_WAITING
            and self._told_bytes + size_bytes <= _MOST_WAITING_BYTES
            and not self._closed
        )

    def add(self, told: AppendedBatch | Happened) -> None:
        self._told_bytes += told.size_bytes
        self._queue(told)

    # what is asked

    def caught_up(self) -> Pending[Ring]:
        """The ring, with the spans of all that was told until now."""
        ring: Pending[Ring] = Pending()
        mark: Pending[None] = Pending()

        def there(done: Pending[None]) -> None:
            if self._ring is None:
                ring.fail(RuntimeError("there is no place for spans"))
            else:
                ring.resolve(self._ring)

        mark.then(there)
        self._queue(mark)
        return ring

    # the end

    def close(self) -> Pending[None]:
        closed: Pending[None] = Pending()

        def end(_: Pending[Ring]) -> None:
            waiting = [each.close() for each in self.exporters]
            left = len(waiting)

            def exported(_: Pending[None]) -> None:
                nonlocal left
                left -= 1
                if not left:
                    closed.resolve(None)

            for each in waiting:
                each.then(exported)
            if not waiting:
                closed.resolve(None)

        self._closed = True
        self.caught_up().then(end)
        return closed

    # internals

    def _queue(self, told: _Told) -> None:
        self._told.append(told)
        if not self._works:
            self._go_on()

    def _go_on(self) -> None:
        self._works = True
        self._long_requests.run_in_turn(self._work()).then(self._worked)

    def _worked(self, done: Pending[None]) -> None:
        """Nothing of it may stop what comes."""
        self._works = False
        try:
            done.result()
        except Exception:
            logger.exception("spans could not be kept")
            if self._ring is None:
                self._give_up()
        if self._told:
            self._go_on()

    def _give_up(self) -> None:
        self._closed = True
        told, self._told = self._told, deque()
        for each in told:
            if isinstance(each, Pending):
                each.resolve(None)

    def _work(self) -> Steps[None]:
        if self._ring is None:
            yield from self._opened()
        while self._told:
            told = self._told.popleft()
            if isinstance(told, Pending):
                told.resolve(None)
                continue
            self._told_bytes -= told.size_bytes
            try:
                if isinstance(told, AppendedBatch):
                    yield from self._record_batch(told)
                else:
                    yield from self._record_event(told)
            except RecordError as error:
                self.dropped += 1
                logger.debug("records of %s leave no spans: %s", told.log.topic, error)

    def _opened(self) -> Steps[None]:
        ring = yield from wait(self._worker.run(self._open_ring))
        for position, data in ring.verified():
            head = read_head(data)
            if head.event == _RECEIVED:
                self.sampled_of(head.topic_id, head.partition).add(head.offset, position)
            yield None
        self._ring = ring

    def _record_batch(self, told: AppendedBatch) -> Steps[None]:
        log, header = told.log, told.header
        assert self._ring is not None
        log.sampled.forget_before(self._ring.tail)
        payload = partial(payload_of, told.batch, header, _MOST_DECOMPRESSED_BYTES)
        aside = header.codec and len(told.batch) > _ASIDE_BYTES
        data = (yield from wait(self._worker.run(payload))) if aside else payload()
        if log.sampling.by_parent_only and b"traceparent" not in data:
            return
        status = OK if told.error is None else ERROR
        attributes: Attributes = {} if told.error is None else {"error": kept_text(told.error)}
        for record in iter_payload(data, header):
            yield None
            place = log.topic_id, log.partition, record.offset
            context = log.sampling.context(*place, record.headers)
            if context is None:
                continue
            received = span_id(*place, RECEIVED)
            key = kept_key(record.key)
            of_record = log.topic_id, log.topic, log.partition, record.offset
            position = self._keep(
                Span(
                    context.trace_id, received, context.parent_id, *of_record, RECEIVED, status,
                    told.received_ns, told.end_ns, key, {"bytes": len(record.value or b""), **attributes},
                )
            )  # fmt: skip
            if position >= 0:
                log.sampled.add(record.offset, position)
            self._keep(
                Span(
                    context.trace_id, span_id(*place, STORED), received, *of_record, STORED, status,
                    told.begin_ns, told.end_ns, key, attributes,
                )
            )  # fmt: skip

    def _record_event(self, told: Happened) -> Steps[None]:
        log, event = told.log, told.event
        attributes = {name: kept_text(value) for name, value in told.attributes.items()}
        assert self._ring is not None
        log.sampled.forget_before(self._ring.tail)
        group, count = attributes.get("group"), attributes.get("deliveryCount")
        for offset, position in log.sampled.between(told.first, told.last):
            yield None
            data = self._ring.read(position)
            if data is None:
                continue
            first = unpacked(data)
            place = log.topic_id, log.partition, offset
            # A delivery to a share group is known by its number; of others there may be any number.
            delivery = (FETCHED, group, count)
            if event == FETCHED:
                parent = first.span_id
                own = delivery if count is not None else (FETCHED, told.time_ns, *attributes.values())
            else:
                parent = span_id(*place, *delivery)
                own = event, group, count
            self._keep(
                first._replace(
                    span_id=span_id(*place, *own),
                    parent_id=parent,
                    event=event,
                    status=status_of(event),
                    begin_ns=told.time_ns,
                    end_ns=told.time_ns,
                    attributes=attributes,
                )
            )

    def _keep(self, span: Span) -> int:
        assert self._ring is not None
        position = self._ring.append(span.packed())
        self.recorded += 1
        for exporter in self.exporters:
            exporter.add(span)
        return position
