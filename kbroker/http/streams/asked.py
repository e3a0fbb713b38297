"""What a stream is asked for by its request: what it reads, from where on, in which shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kbroker.http.endpoint import Parameter
from kbroker.http.moments import timestamp_of
from kbroker.http.problems import Problem, problem_of
from kbroker.http.record_parameters import (
    ISOLATION_PARAMETER,
    KEY_PARAMETER,
    VALUE_PARAMETER,
    encodings,
    reads_committed,
)
from kbroker.http.streams.feed import Shape
from kbroker.http.streams.filters import PARAMETERS as FILTERS
from kbroker.http.streams.filters import filters_of
from kbroker.http.streams.positions import Positions, parsed, tag_of
from kbroker.http.streams.sources import MemberSource, ReaderSource
from kbroker.http.turns import in_turns
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.operations.offsets import EARLIEST, LATEST, visible_end
from kbroker.operations.topic_reader import MOST_PARTITIONS, TooManyPartitions, open_reader, positions_at
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.http.request import HttpRequest
    from kbroker.http.streams.feed import Source
    from kbroker.topics.registry import Topic

_NAMED = {"earliest": EARLIEST, "latest": LATEST}
_MOST_RECORDS = 10**9
_REBALANCE_MS = 60_000  # in which a client must take what it was sent before its group takes partitions back


class Asked(NamedTuple):
    source: Source
    positions: Positions | None
    """None: the group has them."""
    shape: Shape


async def open_stream(request: HttpRequest, *, commits: bool = True) -> Asked:
    """Raises Problem. What it opens is to be closed. ``commits``: a member of a group does so by itself."""
    shape = _shape(request)
    group_id = request.query("group", str)
    topic = request.resources.topic(request.path["topic"], AclOperation.READ)
    committed = reads_committed(request)
    if group_id is not None:
        settings = _member_settings(request, committed=committed)
        return Asked(MemberSource(request.resources, topic, group_id, settings, commits=commits), None, shape)
    partitions = _partitions(request, topic)
    offsets = await _offsets(request, topic, partitions, committed=committed)
    reader = await in_turns(
        request, open_reader(request.resources, topic, partitions, offsets, committed=committed)
    )
    return Asked(ReaderSource(reader), Positions(topic, reader.positions), shape)


def _shape(request: HttpRequest) -> Shape:
    most = request.query("maxRecords", int)
    if most is not None and not 1 <= most <= _MOST_RECORDS:
        raise Problem(400, f"maxRecords must be from 1 to {_MOST_RECORDS}, not {most}.")
    return Shape(request.path["topic"], encodings(request), filters_of(request), most)


def _member_settings(request: HttpRequest, *, committed: bool) -> ConsumerSettings:
    for name in ("partition", "timestamp", "lastEventId"):
        if name in request.parameters:
            raise Problem(
                400, f"A group says which partitions are read, and from where on: {name} does not go with it."
            )
    begin = request.query("offset", str, "latest")
    if begin not in _NAMED:
        raise Problem(
            400, "A group goes on where it has committed; where it has not, at offset=earliest or latest."
        )
    return ConsumerSettings(
        auto_offset_reset=OffsetReset(begin),
        auto_commit=False,
        read_committed=committed,
        rebalance_timeout_ms=_REBALANCE_MS,
        idle_ms=None,
        client_id=request.caller.client_id or "http",
        client_host=f"/{request.caller.peer_host}",
    )


def _partitions(request: HttpRequest, topic: Topic) -> Sequence[int] | None:
    """None: all."""
    named = request.parameters.get("partition", [])
    if not named:
        if topic.partitions > MOST_PARTITIONS:
            raise TooManyPartitions(topic.name)
        return None
    if len(named) > MOST_PARTITIONS:
        raise Problem(400, f"A stream reads {MOST_PARTITIONS} partitions at most.")
    numbers = set()
    for text in named:
        if not text.isascii() or not text.isdecimal() or len(text) > 10:
            raise Problem(400, f"partition must be a number from 0 on, not {text[:50]!r}.")
        if int(text) >= topic.partitions:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"The topic has {topic.partitions} partition(s), from 0 on: there is no partition {text}.",
            )
        numbers.add(int(text))
    return sorted(numbers)


async def _offsets(
    request: HttpRequest, topic: Topic, partitions: Sequence[int] | None, *, committed: bool
) -> dict[int, int]:
    """Where to begin. A partition that is not in it is read from its first record."""
    read = range(topic.partitions) if partitions is None else partitions
    text, moment = request.query("offset", str), request.query("timestamp", str)
    last_id = request.query("lastEventId", str) or request.headers.get("last-event-id")
    if text is not None and moment is not None:
        raise Problem(400, "A stream begins at an offset or at a timestamp: name one of them.")
    if last_id:
        given = parsed(last_id)
        if given.tag and given.tag != tag_of(topic):
            return {}
        return {number: offset for number, offset in given.offsets.items() if number in read}
    if text is not None and text not in _NAMED:
        return _numbered(request, topic, read, text, committed=committed)
    wanted = _NAMED[text or "latest"] if moment is None else timestamp_of(moment, "timestamp")
    steps = positions_at(request.resources, topic, read, wanted, committed=committed)
    return await in_turns(request, steps)


def _numbered(
    request: HttpRequest, topic: Topic, partitions: Sequence[int], text: str, *, committed: bool
) -> dict[int, int]:
    """At this offset in each partition; where it is deleted already, the stream tells of a gap."""
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise Problem(400, f"offset must be a number from 0 on, earliest or latest, not {text[:50]!r}.")
    offset = int(text)
    for number in partitions:
        end = visible_end(request.resources.log_of(topic, number), committed=committed)
        if offset > end:
            problem = problem_of(
                ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"Offset {offset} is not there yet: the next one of partition {number} is {end}.",
                )
            )
            problem.more["nextOffset"] = end
            raise problem
    return dict.fromkeys(partitions, offset)


PARAMETERS = (
    Parameter("offset", "A number (in each partition), earliest, or latest (if not given)."),
    Parameter("timestamp", "Instead of an offset: milliseconds since 1970, or ISO 8601."),
    Parameter(
        "partition",
        "Only this partition; may be repeated. All of the topic, also new ones, if not given.",
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": MOST_PARTITIONS},
    ),
    Parameter("group", "Read as a member of this group, which is told what the client has taken."),
    Parameter("lastEventId", "Go on behind this event: what Last-Event-ID is, for who cannot set headers."),
    Parameter("Last-Event-ID", "Go on behind this event, whatever offset and timestamp say.", where="header"),
    Parameter(
        "maxRecords",
        "End after so many.",
        {"type": "integer", "minimum": 1, "maximum": _MOST_RECORDS},
    ),
    *FILTERS,
    ISOLATION_PARAMETER,
    KEY_PARAMETER,
    VALUE_PARAMETER,
)
