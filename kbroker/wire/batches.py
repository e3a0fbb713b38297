"""What a RECORDS field holds: each batch in a few words; its records, with keys and values, on request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kbroker.protocol.records import iter_records, parse_control
from kbroker.protocol.records.batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC,
    check_crc,
    read_header,
)
from kbroker.protocol.records.compression import CODEC_NAMES
from kbroker.protocol.records.errors import RecordError
from kbroker.protocol.records.legacy import iter_message_set

_MAGIC_AT: Final = 16
_SHOWN_BYTES: Final = 64
_MAX_DECOMPRESSED: Final = 16 << 20

Facts = dict[str, Any]


def batches(data: bytes, whole: bool = True) -> Iterator[tuple[Facts, memoryview]]:
    """Facts of each batch, or old message, with its bytes; `whole`: nothing of the field is missing here."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        rest = view[position:]
        if len(rest) <= _MAGIC_AT:
            yield _incomplete(None, rest, whole), rest
            return
        size = LOG_OVERHEAD + int.from_bytes(rest[8:12], "big", signed=True)
        magic = rest[_MAGIC_AT]
        if magic > MAGIC or size <= _MAGIC_AT:
            yield {"problem": f"{len(rest)} bytes are no record batch: magic {magic}, size {size}"}, rest
            return
        if magic < MAGIC:
            yield _old(rest, size, magic, whole), rest[:size]
        elif len(rest) < BATCH_OVERHEAD:
            yield _incomplete(size, rest, whole), rest
        else:
            yield _batch(rest, size, whole), rest[:size]
        position += size


def _incomplete(size: int | None, rest: memoryview, whole: bool) -> Facts:
    of = "" if size is None else f" of {size}"
    where = "the batch is cut off" if whole else "the rest is not kept"
    return {"problem": f"{where}: {len(rest)} bytes{of}"}


def _batch(rest: memoryview, size: int, whole: bool) -> Facts:
    header = read_header(rest)
    facts: Facts = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "size": size,
        "codec": _codec(header.attributes),
        "leader_epoch": header.partition_leader_epoch,
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "append" if header.timestamp_type else "create",
    }
    if header.has_producer_id:
        facts |= {
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
        }
    if header.is_transactional:
        facts["transactional"] = True
    if header.is_control:
        facts["control"] = True
    if size > len(rest):
        facts |= {"crc": "not checked", **_incomplete(size, rest, whole)}
    else:
        facts["crc"] = "ok" if check_crc(rest, 0, size) else "wrong"
    return facts


def _old(rest: memoryview, size: int, magic: int, whole: bool) -> Facts:
    import zlib

    facts: Facts = {"magic": magic, "offset": int.from_bytes(rest[:8], "big", signed=True), "size": size}
    if size > len(rest):
        return {**facts, **_incomplete(size, rest, whole)}
    facts["codec"] = _codec(rest[17]) if size > 17 else "?"
    facts["crc"] = "ok" if zlib.crc32(rest[16:size]) == int.from_bytes(rest[12:16], "big") else "wrong"
    return facts


def _codec(attributes: int) -> str:
    number = attributes & CODEC_MASK
    return CODEC_NAMES[number] if number < len(CODEC_NAMES) else str(number)


def records(batch: memoryview, *, full: bool) -> Iterator[Facts]:
    """Each record with key, value and headers, shortened unless `full`; the last tells why no more."""
    try:
        if batch[_MAGIC_AT] < MAGIC:
            for old in iter_message_set(batch, limit=_MAX_DECOMPRESSED):
                yield {
                    "offset": old.offset,
                    "timestamp": old.timestamp,
                    "key": text(old.key, full=full),
                    "value": text(old.value, full=full),
                }
            return
        header = read_header(batch)
        if header.is_control:
            marker = parse_control(batch)
            named = "control record" if marker is None else marker.type.name.lower()
            yield {"offset": header.base_offset, "timestamp": header.max_timestamp, "marker": named}
            return
        for record in iter_records(batch, limit=_MAX_DECOMPRESSED):
            shown: Facts = {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": text(record.key, full=full),
                "value": text(record.value, full=full),
            }
            if record.headers:
                shown["headers"] = [[name, text(value, full=full)] for name, value in record.headers]
            yield shown
    except (RecordError, IndexError) as error:
        yield {"problem": str(error) or "the batch is cut off"}


def text(data: bytes | None, *, full: bool) -> str | None:
    """Readable text as it is, anything else as hex."""
    if data is None:
        return None
    shown = data if full else data[: _SHOWN_BYTES + 4]
    try:
        readable = bytes(shown).decode(errors="strict" if full or len(data) <= len(shown) else "ignore")
    except UnicodeDecodeError:
        readable = "\0"
    if not readable.isprintable():
        limit = len(data) if full else _SHOWN_BYTES // 2
        more = f"… ({len(data)} bytes)" if len(data) > limit else ""
        return f"0x{bytes(data[:limit]).hex()}{more}"
    if full or len(data) <= _SHOWN_BYTES:
        return readable
    return f"{readable[:_SHOWN_BYTES]}… ({len(data)} bytes)"
