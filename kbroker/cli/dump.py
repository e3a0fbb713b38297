"""`kbroker dump`: what is in a segment's files, read without a broker."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

from kbroker.cli.output import add_output_options, note, print_table, say, stream
from kbroker.exit_codes import FOUND, OK, CommandFailed

Rows = Iterator[dict[str, Any]]

_ROWS_AT_ONCE = 10_000
_TYPES = "a .log, .index, .timeindex, .txnindex or .snapshot file"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "dump",
        help="show what is in a segment file (offline)",
        description=f"Show the batches of a segment, or the entries of {_TYPES}. Exit code 4: it is damaged.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=_TYPES)
    parser.add_argument("--records", action="store_true", help="of a .log: every record, with key and value")
    parser.add_argument("--keys", action="store_true", help="of a .log: every record, with its key only")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    damaged = False
    for path in arguments.files:
        if not os.path.isfile(path):
            raise CommandFailed(f"{path} is no file: name {_TYPES}, such as DATA/TOPIC-0/{0:020d}.log")
        read = _READERS.get(os.path.splitext(path)[1])
        if read is None:
            raise CommandFailed(f"{path} is not {_TYPES}")
        damaged |= _print(path, read, arguments)
    return FOUND if damaged else OK


def _print(path: str, read: Callable[[str, argparse.Namespace], Rows], arguments: argparse.Namespace) -> bool:
    """Print what can be read; returns whether something could not."""
    import json

    if len(arguments.files) > 1 and not arguments.json:
        say(f"{path}:")
    problem = None
    rows: list[dict[str, Any]] = []
    try:
        for row in read(path, arguments):
            if arguments.json:
                stream(json.dumps(row, ensure_ascii=False))
                continue
            rows.append(row)
            if len(rows) == _ROWS_AT_ONCE:
                _print_rows(rows)
    except ValueError as error:  # RecordError, CorruptSnapshot and the like
        problem = error
    _print_rows(rows)
    if problem is not None:
        note(f"kbroker: {path}: damaged behind that: {problem}")
    return problem is not None


def _print_rows(rows: list[dict[str, Any]]) -> None:
    """Print and forget them: a segment may have more than fit into memory."""
    if rows:
        print_table([name.upper() for name in rows[0]], [list(row.values()) for row in rows], write=stream)
    rows.clear()


def _log(path: str, arguments: argparse.Namespace) -> Rows:
    from kbroker.protocol.records import iter_records
    from kbroker.storage.files import Files
    from kbroker.storage.offline.inspection import read_batches

    for position, header, batch in read_batches(Files(), path):
        if not arguments.records and not arguments.keys:
            yield _batch(position, header)
            continue
        for record in iter_records(batch):
            yield _record(record, header, batch, values=arguments.records)


def _batch(position: int, header: Any) -> dict[str, Any]:
    from kbroker.cli.times import iso

    return {
        "position": position,
        "base": header.base_offset,
        "last": header.last_offset,
        "records": header.record_count,
        "size": header.size_bytes,
        "epoch": header.partition_leader_epoch,
        "codec": _codec(header.codec),
        "max_timestamp": iso(header.max_timestamp),
        "time": "append" if header.timestamp_type else "create",
        "producer": f"{header.producer_id}/{header.producer_epoch}/{header.base_sequence}"
        if header.has_producer_id
        else "-",
        "flags": _flags(header) or "-",
        "crc": f"{header.crc:08x}",
    }


def _flags(header: Any) -> str:
    flags = []
    if header.is_transactional:
        flags.append("transactional")
    if header.is_control:
        flags.append("control")
    if header.delete_horizon_ms is not None:
        flags.append("horizon")
    return ",".join(flags)


def _codec(number: int) -> str:
    return ("none", "gzip", "snappy", "lz4", "zstd")[number] if number < 5 else str(number)


def _record(record: Any, header: Any, batch: memoryview, *, values: bool) -> dict[str, Any]:
    from kbroker.cli.times import iso
    from kbroker.protocol.records import parse_control

    row: dict[str, Any] = {"offset": record.offset, "timestamp": iso(record.timestamp)}
    if header.is_control:
        control = parse_control(batch)
        row["key"] = f"<{control.type.name.lower() if control else 'control'}>"
    else:
        row["key"] = _text(record.key)
    if values:
        row["value"] = None if header.is_control else _text(record.value)
        row["headers"] = " ".join(f"{name}={_text(value)}" for name, value in record.headers)
    return row


def _text(data: bytes | None) -> str | None:
    """Readable text as it is, anything else escaped."""
    if data is None:
        return None
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and (text or not data) else repr(bytes(data))[2:-1]


def _index(path: str, _: argparse.Namespace) -> Rows:
    from kbroker.storage.files import Files
    from kbroker.storage.offline.inspection import read_index

    for relative, position in read_index(Files(), path):
        yield {"offset": _base(path) + relative, "position": position}


def _time_index(path: str, _: argparse.Namespace) -> Rows:
    from kbroker.cli.times import iso
    from kbroker.storage.files import Files
    from kbroker.storage.offline.inspection import read_index

    for timestamp, relative in read_index(Files(), path):
        yield {"timestamp": iso(timestamp), "offset": _base(path) + relative}


def _transaction_index(path: str, _: argparse.Namespace) -> Rows:
    from kbroker.storage.partition.transaction_index import decode

    for entry in decode(_content(path)):
        yield dict(entry._asdict())


def _snapshot(path: str, _: argparse.Namespace) -> Rows:
    from kbroker.cli.times import iso
    from kbroker.storage.partition.producer_snapshot import decode

    for entry in decode(_content(path)):
        last = entry.batches[-1] if entry.batches else None
        yield {
            "producer_id": entry.producer_id,
            "epoch": entry.producer_epoch,
            "last_sequence": last.last_sequence if last else -1,
            "last_offset": last.last_offset if last else -1,
            "timestamp": iso(entry.last_timestamp),
            "coordinator_epoch": entry.coordinator_epoch,
            "transaction_offset": entry.current_txn_first_offset,
        }


def _content(path: str) -> bytes:
    from kbroker.storage.files import Files

    return Files().read_bytes(path)


def _base(path: str) -> int:
    stem = os.path.basename(path).partition(".")[0]
    return int(stem) if stem.isdecimal() else 0


_READERS: dict[str, Callable[[str, argparse.Namespace], Rows]] = {
    ".log": _log,
    ".index": _index,
    ".timeindex": _time_index,
    ".txnindex": _transaction_index,
    ".snapshot": _snapshot,
}
