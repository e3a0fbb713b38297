"""Records as code in the process writes and reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from kbroker.operations import publishing
from kbroker.protocol.records.codec import NO_TIMESTAMP, Record
from kbroker.protocol.records.compression import CODEC_NAMES

if TYPE_CHECKING:
    from kbroker.coordinators.groups.store import TopicPartition
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

Bytes = bytes | bytearray | memoryview
Key = Bytes | str | None
Value = Bytes | str | Mapping[str, Any] | list[Any] | None
"""Bytes as they are, text as UTF-8, a dictionary or a list as JSON; None is a tombstone."""
Headers = Mapping[str, Bytes | str | None] | Sequence[tuple[str, Bytes | str | None]]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Time = int | datetime
"""Milliseconds since 1970, as Kafka has it, or a datetime with its time zone."""

_MOST_MS = (1 << 63) - 1
_RECORD_BYTES = 100  # of a record in a batch, besides its contents
_PER_PAUSE = 64


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record for `publish_many` and `publish_each`."""

    topic: str
    value: Value
    key: Key = None
    headers: Headers = ()
    timestamp: Time | None = None
    """None: the time of its publishing."""
    partition: int | None = None
    """None: its key decides, or whose turn it is."""


class RecordMetadata(NamedTuple):
    """Where a published record is."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class Commits(Protocol):
    """Where records are committed that a group has read."""

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...


class NoGroup:
    """For records that no group reads."""

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        from kbroker.local.errors import InvalidRequest

        raise InvalidRequest("The record was read without a group: there is nowhere to commit to.")


NO_GROUP = NoGroup()


@dataclass(slots=True)
class ReceivedRecord:
    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    """None: a tombstone."""
    headers: tuple[tuple[str, bytes | None], ...]
    commits: Commits = field(repr=False, compare=False)

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp / 1000, UTC)

    def text(self) -> str:
        """The value as UTF-8. A tombstone has none: ValueError."""
        return self._content().decode()

    def json(self) -> Any:
        """The value read as JSON. A tombstone has none: ValueError."""
        return json.loads(self._content())

    async def commit(self) -> None:
        """For its group: all of its partition up to this record is done."""
        from kbroker.coordinators.groups.store import TopicPartition

        await self.commits.commit({TopicPartition(self.topic, self.partition): self.offset + 1})

    def _content(self) -> bytes:
        if self.value is None:
            raise ValueError(
                f"the record at offset {self.offset} of {self.topic}-{self.partition} is a tombstone: "
                "its value is None"
            )
        return self.value


def received(topic: str, partition: int, record: Record, commits: Commits = NO_GROUP) -> ReceivedRecord:
    timestamp, key, value, headers, offset, _ = record
    return ReceivedRecord(topic, partition, offset, timestamp, key, value, headers, commits)


def new_record(
    value: Value, key: Key, headers: Headers, timestamp: Time | None, partition: int | None
) -> publishing.NewRecord:
    """As operations take it. Raises TypeError and ValueError."""
    return publishing.NewRecord(
        Record(
            NO_TIMESTAMP if timestamp is None else milliseconds(timestamp),
            None if key is None else _bytes(key, "key"),
            _value(value),
            _headers(headers) if headers else (),
        ),
        partition,
    )


def codec_of(compression: Compression) -> int:
    """Raises ValueError."""
    if compression not in CODEC_NAMES:
        raise ValueError(f"compression is one of {', '.join(CODEC_NAMES)}, not {compression!r}")
    return CODEC_NAMES.index(compression)


def new_records(resources: Resources, records: Iterable[NewRecord]) -> Steps[list[publishing.NewRecord]]:
    """The same of many, in turns with others."""
    made: list[publishing.NewRecord] = []
    for each in records:
        made.append(new_record(each.value, each.key, each.headers, each.timestamp, each.partition))
        if not len(made) % _PER_PAUSE:
            yield None
    return made


def size_bytes(new: publishing.NewRecord) -> int:
    """About what it takes in a batch."""
    _, key, value, headers, _, _ = new.record
    size = _RECORD_BYTES + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += len(name) + len(content or b"")
    return size


def milliseconds(time: Time) -> int:
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise ValueError(f"{time} says nothing of its time zone: give it one, such as timezone.utc")
        time = int(time.timestamp() * 1000)
    if not 0 <= time <= _MOST_MS:
        raise ValueError(f"a timestamp is a number of milliseconds since 1970, not {time}")
    return time


def _value(value: Value) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    if isinstance(value, Mapping):
        return _value(dict(value))
    return _bytes(value, "value")


def _bytes(content: object, what: str) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, Bytes):
        return bytes(content)
    more = ", a dictionary or a list" if what == "value" else ""
    raise TypeError(f"a {what} is bytes, text{more} or None, not {type(content).__name__}")


def _headers(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    made: list[tuple[str, bytes | None]] = []
    for name, content in headers.items() if isinstance(headers, Mapping) else headers:
        if not isinstance(name, str):
            raise TypeError(f"the name of a header is text, not {type(name).__name__}")
        made.append((name, None if content is None else _bytes(content, "header")))
    return tuple(made)
