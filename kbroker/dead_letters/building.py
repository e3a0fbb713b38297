"""Dead letters as batches: records of a share partition with the headers of KIP-1191 behind their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kbroker.dead_letters.origin import SHARE_PREFIX
from kbroker.protocol.records import BATCH_OVERHEAD, Record, build_batch, increment_sequence
from kbroker.protocol.records.codec import encode_record

REASONS = {
    "reject": "Offset rejected by client.",
    "limit": "Offset delivery count exceeded the threshold.",
}
"""Kafka's words, which are in the headers: clients tell the reasons apart by them."""
_OFFSET_HEADER = SHARE_PREFIX + "offset"
_MOST_RECORDS = 1000  # of one batch


class Place(NamedTuple):
    """What all dead letters of one share partition say of where they come from."""

    group_id: str
    topic: str
    partition: int


class Given(NamedTuple):
    """A record that was given up; None: the log has lost it."""

    offset: int
    delivery_count: int
    reason: str
    record: Record | None


class Batch(NamedTuple):
    data: bytearray
    base_sequence: int
    records: int
    last_offset: int
    """In the partition that the records come from."""

    @property
    def next_sequence(self) -> int:
        return increment_sequence(self.base_sequence, self.records)


def dead_letter(place: Place, given: Given, now_ms: int, *, copy_record: bool) -> Record:
    """Its timestamp is that of its death, so that it is kept as long as others of the topic."""
    added = (
        ("topic", place.topic),
        ("partition", str(place.partition)),
        ("offset", str(given.offset)),
        ("group", place.group_id),
        ("delivery.count", str(given.delivery_count)),
        ("message", REASONS[given.reason]),
    )
    headers = tuple((SHARE_PREFIX + name, value.encode()) for name, value in added)
    record = given.record
    if record is None or not copy_record:
        return Record(now_ms, None, None, headers)
    return Record(now_ms, record.key, record.value, (*record.headers, *headers))


def origin_offset(letter: Record) -> int:
    """Of a dead letter that was made here."""
    said = next(value for name, value in reversed(letter.headers) if name == _OFFSET_HEADER)
    return int(said or b"")


def batches(
    place: Place,
    records: Iterable[Given],
    *,
    now_ms: int,
    copy_record: bool,
    max_bytes: int,
    producer_id: int,
    sequence: int,
) -> Iterator[Batch]:
    """Batches that the topic takes. A record that would be too large for it is not copied."""
    letters: list[Record] = []
    size, last_offset = BATCH_OVERHEAD, -1

    def batch() -> Batch:
        data = build_batch(letters, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        return Batch(bytearray(data), sequence, len(letters), last_offset)

    for given in records:
        letter = dead_letter(place, given, now_ms, copy_record=copy_record)
        length = len(encode_record(letter, 0, _MOST_RECORDS))
        if copy_record and BATCH_OVERHEAD + length > max_bytes:
            letter = dead_letter(place, given, now_ms, copy_record=False)
            length = len(encode_record(letter, 0, _MOST_RECORDS))
        if letters and (size + length > max_bytes or len(letters) == _MOST_RECORDS):
            made = batch()
            yield made
            letters, size, sequence = [], BATCH_OVERHEAD, made.next_sequence
        letters.append(letter)
        size += length
        last_offset = given.offset
    if letters:
        yield batch()
