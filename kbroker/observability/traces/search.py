"""Traces found in the ring: the newest that have a span which answers to what is asked, whole.

The ring is read from its oldest span on, in turns with what others want. Spans of topics that the caller may
not read are as if they were not there; those of topics that are gone are for who may describe the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kbroker.observability.traces.spans import (
    ERROR,
    STATUSES,
    Span,
    kept_key,
    key_of,
    read_head,
    topic_of,
    unpacked,
)
from kbroker.pending import wait
from kbroker.security.acls import AclOperation
from kbroker.storage.trace_events import EVENTS

if TYPE_CHECKING:
    from kbroker.observability.traces.ring import Ring
    from kbroker.observability.traces.spans import Head
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

MOST_SPANS = 1000
"""Of one trace that are told."""
_MOST_TOPICS = 20


class Wanted(NamedTuple):
    """What a span must be like; None: like anything."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    key: bytes | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    status: str | None = None
    event: str | None = None


class TraceSummary:
    """What a trace is like, of all of its spans that the caller may see."""

    __slots__ = ("begin_ns", "end_ns", "events", "failed", "spans", "topics", "trace_id")

    def __init__(self, trace_id: bytes) -> None:
        self.trace_id = trace_id
        self.begin_ns = self.end_ns = 0
        self.spans = 0
        self.topics: dict[str, None] = {}
        self.events: dict[int, None] = {}
        self.failed = False

    def add(self, head: Head, data: bytes) -> None:
        self.begin_ns = min(self.begin_ns, head.begin_ns) if self.spans else head.begin_ns
        self.end_ns = max(self.end_ns, head.end_ns)
        self.spans += 1
        self.events[head.event] = None
        self.failed |= STATUSES[head.status] == ERROR
        if len(self.topics) < _MOST_TOPICS:
            self.topics[topic_of(head, data)] = None


def find_trace(resources: Resources, trace_id: bytes) -> Steps[list[Span]]:
    """Its spans by their beginning; of very many, the newest. None of them: there is no such trace."""
    ring = yield from _ring(resources)
    may_see = _Rights(resources).may_see
    spans: list[Span] = []
    for _, data in () if ring is None else ring.entries():
        yield None
        if data[: len(trace_id)] != trace_id or not may_see(read_head(data)):
            continue
        spans.append(unpacked(data))
        if len(spans) >= 2 * MOST_SPANS:
            del spans[:MOST_SPANS]
    return sorted(spans[-MOST_SPANS:], key=lambda span: span.begin_ns)


def search(resources: Resources, wanted: Wanted, limit: int) -> Steps[list[TraceSummary]]:
    """The newest first: by the newest span of each that answers."""
    ring = yield from _ring(resources)
    if ring is None:
        return []
    may_see = _Rights(resources).may_see
    matches = _matcher(wanted)
    newest: dict[bytes, None] = {}
    for _, data in ring.entries():
        head = read_head(data)
        if matches(head, data) and may_see(head):
            newest.pop(head.trace_id, None)
            newest[head.trace_id] = None
            if len(newest) > limit:
                del newest[next(iter(newest))]
        yield None
    found = {trace_id: TraceSummary(trace_id) for trace_id in reversed(newest)}
    for _, data in ring.entries() if found else ():
        head = read_head(data)
        summary = found.get(head.trace_id)
        if summary is not None and may_see(head):
            summary.add(head, data)
        yield None
    return [summary for summary in found.values() if summary.spans]


def _ring(resources: Resources) -> Steps[Ring | None]:
    """With all that has happened until now; None: no topic was ever traced."""
    traces = resources.broker.known_traces()
    return None if traces is None else (yield from wait(traces.caught_up()))


def _matcher(wanted: Wanted) -> Callable[[Head, bytes], bool]:
    event = None if wanted.event is None else EVENTS.index(wanted.event)
    status = None if wanted.status is None else STATUSES.index(wanted.status)
    key = kept_key(wanted.key)

    def matches(head: Head, data: bytes) -> bool:
        if (
            (wanted.offset is not None and head.offset != wanted.offset)
            or (wanted.partition is not None and head.partition != wanted.partition)
            or (event is not None and head.event != event)
            or (status is not None and head.status != status)
            or (wanted.from_ns is not None and head.end_ns < wanted.from_ns)
            or (wanted.to_ns is not None and head.begin_ns > wanted.to_ns)
        ):
            return False
        return wanted.topic in (None, topic_of(head, data)) and (key is None or key_of(head, data) == key)

    return matches


class _Rights:
    """Asked once for each topic."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._known: dict[bytes, bool] = {}

    def may_see(self, head: Head) -> bool:
        seen = self._known.get(head.topic_id)
        if seen is None:
            seen = self._known[head.topic_id] = self._may_see(head.topic_id)
        return seen

    def _may_see(self, topic_id: bytes) -> bool:
        topic = self._resources.broker.topics.get_by_id(topic_id)
        if topic is None:
            return self._resources.may_cluster(AclOperation.DESCRIBE)
        return self._resources.may_topic(AclOperation.READ, topic.name)
