"""Records between messages and what operations take and give; positions in logs, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kbroker.grpc.statuses import GrpcError, Status
from kbroker.operations.offsets import EARLIEST, LATEST
from kbroker.operations.publishing import NewRecord
from kbroker.protocol.records.codec import NO_TIMESTAMP, Record

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps

_PER_PAUSE: Final = 64  # records
_POSITIONS: Final = {1: EARLIEST, 2: LATEST}
_MOST_RECORDS: Final = 100_000


def new_records(given: Sequence[Any]) -> Steps[list[NewRecord]]:
    """Of NewRecord messages."""
    if not given:
        raise GrpcError(Status.INVALID_ARGUMENT, "There are no records.")
    if len(given) > _MOST_RECORDS:
        raise GrpcError(Status.INVALID_ARGUMENT, f"One request may have {_MOST_RECORDS} records at most.")
    found: list[NewRecord] = []
    for index, each in enumerate(given, 1):
        has = each.HasField
        timestamp = each.timestamp if has("timestamp") else NO_TIMESTAMP
        if timestamp < NO_TIMESTAMP:
            raise GrpcError(
                Status.INVALID_ARGUMENT, f"records[{index - 1}]: a timestamp is milliseconds since 1970."
            )
        headers = tuple(
            (header.name, header.value if header.HasField("value") else None) for header in each.headers
        )
        record = Record(
            timestamp,
            each.key if has("key") else None,
            each.value if has("value") else None,
            headers,
        )
        found.append(NewRecord(record, each.partition if has("partition") else None))
        if not index % _PER_PAUSE:
            yield None
    return found


def add_records(records: Sequence[Record], target: Any) -> Steps[None]:
    """To the repeated Record of a message."""
    for index, record in enumerate(records, 1):
        added = target.add(offset=record.offset, timestamp=record.timestamp)
        if record.key is not None:
            added.key = bytes(record.key)
        if record.value is not None:
            added.value = bytes(record.value)
        for name, value in record.headers:
            header = added.headers.add(name=name)
            if value is not None:
                header.value = bytes(value)
        if not index % _PER_PAUSE:
            yield None


def start_of(start: Any, default: int) -> tuple[int | None, int]:
    """An offset, or else a timestamp, EARLIEST or LATEST."""
    which = start.WhichOneof("at")
    if which == "offset":
        if start.offset < 0:
            raise GrpcError(Status.INVALID_ARGUMENT, "An offset is a number from 0 on.")
        return start.offset, default
    if which == "timestamp":
        if start.timestamp < 0:
            raise GrpcError(Status.INVALID_ARGUMENT, "A timestamp is milliseconds since 1970.")
        return None, start.timestamp
    return None, _POSITIONS.get(start.position, default)


def limit(value: int, name: str, default: int, most: int) -> int:
    """0: not given."""
    if not 0 <= value <= most:
        raise GrpcError(Status.INVALID_ARGUMENT, f"{name} must be from 1 to {most}, not {value}.")
    return value or default
