"""Dead letters as `kbroker dlq show` prints them."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from kbroker.cli import connection, times
from kbroker.cli.dlq_ledger import read_ledger
from kbroker.cli.dlq_letters import DeadLetter, partitions_of, read, reader, starts_of, wanted
from kbroker.cli.output import plural, stream
from kbroker.cli.record_format import compile_format, fields
from kbroker.exit_codes import OK, USAGE, CommandFailed


def show(arguments: argparse.Namespace) -> int:
    if arguments.format is not None and arguments.json:
        raise CommandFailed("--format and --json exclude each other", USAGE)
    write = None if arguments.format is None else compile_format(arguments.format)
    with connection.admin(arguments) as client, reader(arguments) as consumer:
        (topic,) = connection.topic_metadata(client, [arguments.topic])
        ledger = read_ledger(consumer, arguments.topic, str(topic.get("topic_id", "")))
        partitions = partitions_of(consumer, arguments.topic, arguments.partition)
        left = arguments.limit
        for found in read(consumer, partitions, starts_of(consumer, partitions, arguments)):
            if not wanted(arguments, found):
                continue
            if left is not None and left <= 0:
                break
            left = None if left is None else left - 1
            if write is not None:
                sys.stdout.buffer.write(write(found.record))
                continue
            sent_back = ledger.has(found.record.partition, found.record.offset)
            if arguments.json:
                stream(json.dumps(_as_json(found, sent_back), ensure_ascii=False))
            else:
                _print(found, sent_back)
    return OK


def _as_json(found: DeadLetter, sent_back: bool) -> dict[str, Any]:
    origin = None if found.origin is None else found.origin._asdict()
    return {
        **fields(found.record._replace(headers=list(found.headers))),
        "origin": origin,
        "sent_back": sent_back,
    }


def _print(found: DeadLetter, sent_back: bool) -> None:
    record, origin, headers = found
    again = ", sent back" if sent_back else ""
    stream(f"{record.topic}-{record.partition}@{record.offset}  {times.iso(record.timestamp)}{again}")
    if origin is not None:
        by = "" if origin.group is None else f", {_BY[origin.kind]} {origin.group}"
        count = "" if origin.delivery_count is None else f", {plural(origin.delivery_count, 'delivery')}"
        stream(f"  from    {origin.place}{by}{count.replace('deliverys', 'deliveries')}")
        stream(f"  reason  {origin.reason or '-'}")
    stream(f"  key     {_readable(record.key)}")
    stream(f"  value   {_readable(record.value)}")
    for name, value in headers:
        stream(f"  header  {name}={_readable(value)}")


_BY = {"share": "share group", "connect": "connector", "streams": "application", "pipeline": "pipeline"}


def _readable(data: bytes | None) -> str:
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)
