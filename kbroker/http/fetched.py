"""What was fetched, as an answer: read and written within the budget, in turns with all other requests.

Invariants:
- Room for reading and writing is reserved before it begins, and not held while there is no record yet.
- An answer that gets larger than the budget allows ends early: the next fetch goes on there. It has one
  record in any case.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.http.answers import Response, bytes_answer, encoded
from kbroker.http.endpoint import JSON
from kbroker.http.pieces import answer_of, written
from kbroker.http.shown_records import shown
from kbroker.operations.reading import ReadFrom
from kbroker.operations.records import read_records
from kbroker.pending import Pending, wait
from kbroker.requests.long_requests import holding

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbroker.http.json_records import Encoding
    from kbroker.http.request import HttpRequest
    from kbroker.operations.records import RecordsRead
    from kbroker.protocol.records import Record
    from kbroker.requests.long_requests import Steps

NDJSON: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"
LENGTH_PREFIXED: Final = "application/vnd.kbroker.length-prefixed"
_TIMES: Final = 3  # what reading and writing take of what is fetched
_LARGEST_PART: Final = 4  # of the budget, that one fetch reserves
_LENGTH: Final = struct.Struct(">i")


class Wanted(NamedTuple):
    topic: str
    partition: int
    max_bytes: int
    max_records: int
    committed: bool
    media_type: str
    encodings: tuple[Encoding, Encoding]


def answer(request: HttpRequest, wanted: Wanted, offset: int, deadline_ms: int) -> Steps[Response]:
    """Once there is a record, or the deadline has come."""
    budget = request.broker.budget
    room = min(_TIMES * wanted.max_bytes, budget.limit // _LARGEST_PART)
    while True:
        left_ms = deadline_ms - request.now_ms
        found = yield from holding(budget, room, _answer_now(request, wanted, offset, last=left_ms <= 0))
        if isinstance(found, Response):
            return found
        offset = found
        first = ReadFrom(wanted.topic, wanted.partition, offset, 1)
        arrived = read_records(
            request.resources, first, max_records=1, max_wait_ms=left_ms, committed=wanted.committed
        )
        if isinstance(arrived, Pending):
            yield from wait(arrived)


def _answer_now(request: HttpRequest, wanted: Wanted, offset: int, *, last: bool) -> Steps[Response | int]:
    """The answer; or, unless it is the last try, where to go on while there is no record."""
    reading = read_records(
        request.resources,
        ReadFrom(wanted.topic, wanted.partition, offset, wanted.max_bytes),
        max_records=wanted.max_records,
        committed=wanted.committed,
    )
    read = (yield from wait(reading)) if isinstance(reading, Pending) else reading
    if not read.records and not last:
        return read.next_offset
    if wanted.media_type == BYTES:
        return _value(request, read)
    write: Callable[[Record], bytes | Steps[bytes]]
    if wanted.media_type == LENGTH_PREFIXED:
        write = _prefixed
    else:
        write = partial(shown, encodings=wanted.encodings)
    between = b"," if wanted.media_type == JSON else b"\n" if wanted.media_type == NDJSON else b""
    pieces, count = yield from written(request, read.records, write, between, may_end_early=True)
    next_offset = read.next_offset if count == len(read.records) else read.records[count].offset
    if wanted.media_type == JSON:
        head = encoded(
            {
                "topic": wanted.topic,
                "partition": wanted.partition,
                "nextOffset": next_offset,
                "highWatermark": read.high_watermark,
                "lastStableOffset": read.last_stable_offset,
                "logStartOffset": read.log_start_offset,
            }
        )
        pieces = [head[:-1] + b',"records":[', *pieces, b"]}"]
    elif wanted.media_type == NDJSON and count:
        pieces.append(b"\n")
    return answer_of(pieces, wanted.media_type, _headers(read, next_offset))


def _headers(read: RecordsRead, next_offset: int) -> dict[str, str]:
    return {"x-next-offset": str(next_offset), "x-high-watermark": str(read.high_watermark)}


def _prefixed(record: Record) -> bytes:
    """Its value, behind its length in four bytes; a length of -1 has none behind it."""
    value = record.value
    return _LENGTH.pack(-1) if value is None else _LENGTH.pack(len(value)) + value


def _value(request: HttpRequest, read: RecordsRead) -> Response:
    """Of the first record, as it is."""
    headers = _headers(read, read.next_offset)
    if not read.records:
        return Response(None, 204, headers)
    (record,) = read.records
    headers |= {"x-offset": str(record.offset), "x-timestamp": str(record.timestamp)}
    if record.value is None:
        return Response(None, 204, {**headers, "x-tombstone": "true"})
    value = bytes(record.value)
    request.hold(len(value))
    return bytes_answer(value, BYTES, headers=headers)
