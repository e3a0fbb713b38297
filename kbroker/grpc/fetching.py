"""Fetching: the records of a partition from where the client says, with a wait if there are none yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kbroker.grpc.messages import ours
from kbroker.grpc.records import add_records, limit, start_of
from kbroker.network.awaiting import settled
from kbroker.operations.offsets import EARLIEST
from kbroker.operations.partitions import beginning_at, topic_with_partition
from kbroker.operations.reading import ReadFrom
from kbroker.operations.records import MOST_RECORDS, read_records
from kbroker.pending import Pending, wait
from kbroker.requests.long_requests import holding
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.grpc.call import Call
    from kbroker.requests.long_requests import Steps

_MOST_WAIT_MS: Final = 60_000
_MOST_BYTES: Final = 16 * 1024 * 1024
_USUAL_BYTES: Final = 1024 * 1024
_USUAL_RECORDS: Final = 1000
_TIMES: Final = 3  # what reading and writing take of what is fetched
_LARGEST_PART: Final = 4  # of the budget, that one fetch reserves
_RESPONSE = ours("FetchResponse")


async def fetch(call: Call, request: Any) -> Any:
    resources, committed = call.resources, request.read_committed
    max_bytes = limit(request.max_bytes, "max_bytes", _USUAL_BYTES, _MOST_BYTES)
    max_records = limit(request.max_records, "max_records", _USUAL_RECORDS, MOST_RECORDS)
    deadline_ms = call.now_ms + limit(request.max_wait_ms, "max_wait_ms", 0, _MOST_WAIT_MS)
    name, partition = request.topic, request.partition
    topic_with_partition(resources, name, partition, AclOperation.READ)
    offset, at = start_of(request.start, EARLIEST)
    if offset is None:
        offset = await settled(beginning_at(resources, name, partition, at, committed=committed))
    budget = call.broker.budget
    room = min(_TIMES * max_bytes, budget.limit // _LARGEST_PART)
    while True:
        left_ms = 0 if call.stopping else deadline_ms - call.now_ms
        wanted = ReadFrom(name, partition, offset, max_bytes)
        steps = _answer(call, wanted, max_records, committed=committed, last=left_ms <= 0)
        found = await call.in_turns(holding(budget, room, steps))
        if not isinstance(found, int):
            return found
        first, offset = ReadFrom(name, partition, found, 1), found
        call.resting = True
        try:
            await settled(
                read_records(resources, first, max_records=1, max_wait_ms=left_ms, committed=committed)
            )
        finally:
            call.resting = False


def _answer(call: Call, wanted: ReadFrom, max_records: int, *, committed: bool, last: bool) -> Steps[Any]:
    """The answer; or, unless it is the last try, where to go on while there is no record."""
    reading = read_records(call.resources, wanted, max_records=max_records, committed=committed)
    read = (yield from wait(reading)) if isinstance(reading, Pending) else reading
    if not read.records and not last:
        return read.next_offset
    response = _RESPONSE(
        next_offset=read.next_offset,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
    )
    yield from add_records(read.records, response.records)
    return response
