"""`kbroker dlq`: dead letters, why they are there, and the way back."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kbroker.cli import connection, times
from kbroker.cli.output import (
    add_output_options,
    note,
    plural,
    print_json,
    print_rows,
    print_table,
    say,
    stream,
)
from kbroker.exit_codes import FAILED, OK, USAGE, CommandFailed

if TYPE_CHECKING:
    from kbroker.cli.dlq_letters import DeadLetter

_DESCRIPTION = """\
Dead letters: records that could not be processed, in a topic of their own. Headers tell where they came from
and why: those of share groups, Kafka Connect, Kafka Streams and kbroker pipeline are understood.

    kbroker dlq list                                         the topics, and what is in them
    kbroker dlq show dlq.orders --reason rejected -n 5       some records, with everything
    kbroker dlq replay dlq.orders --dry-run                  what would be sent back, and where to
    kbroker dlq replay dlq.orders --rate 100                 send it back, each record once
    kbroker dlq purge dlq.orders --replayed                  delete what was sent back"""
_WIDEST = 60  # letters of a reason in a table
_COLUMNS = {
    "topic": "TOPIC", "from_topic": "FROM", "group": "GROUP", "reason": "REASON", "records": "RECORDS",
    "sent_back": "SENT BACK", "oldest": "OLDEST", "newest": "NEWEST",
}  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from kbroker.cli.dlq_letters import add_filters

    parser = commands.add_parser(
        "dlq",
        help="dead letters: list, show, replay, purge",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = _action(actions, "list", "dead-letter topics, and what is in them by origin and reason", _list)
    listing.add_argument(
        "topics",
        nargs="*",
        metavar="TOPIC",
        help="a name or a pattern such as 'dlq.*' (default: topics whose name has the prefix, or whose last "
        "records are dead letters)",
    )
    listing.add_argument("--prefix", default="dlq.", help="of the names of dead-letter topics (default dlq.)")
    listing.add_argument(
        "--scan", type=int, default=100_000, metavar="N",
        help="count the newest N records of a topic (default 100000)",
    )  # fmt: skip

    show = _action(actions, "show", "dead letters with origin, reason, key, value and headers", _show)
    show.add_argument("topic", metavar="TOPIC")
    show.add_argument("-f", "--format", help="print records as 'kbroker consume -f' does")
    add_filters(show)

    replay = _action(
        actions,
        "replay",
        "send dead letters back to where they came from, each at most once",
        _replay,
        more="Records go to the topic and partition they came from, with their own key, value and headers. "
        "The topic TOPIC.replayed remembers what was sent.",
    )
    replay.add_argument("topic", metavar="TOPIC")
    add_filters(replay)
    replay.add_argument("--to", metavar="OTHER", help="to this topic; the key decides about the partition")
    replay.add_argument("--by-key", action="store_true", help="let the key decide about the partition")
    replay.add_argument("--rate", type=_positive, metavar="N", help="at most so many records per second")
    replay.add_argument("--dry-run", action="store_true", help="only tell what would be sent")

    purge = _action(actions, "purge", "delete the oldest dead letters of a topic", _purge)
    purge.add_argument("topic", metavar="TOPIC")
    purge.add_argument(
        "-p", "--partition", type=int, action="append", help="only this one; any number of times"
    )
    where = purge.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", "--offset", type=int, help="delete what lies below this offset")
    where.add_argument(
        "--before", type=times.timestamp_ms, metavar="TIME", help=f"delete what is older: {times.HELP}"
    )
    where.add_argument(
        "--replayed", action="store_true", help="delete from the start what was sent back, without a gap"
    )
    where.add_argument("--all", action="store_true", help="delete every record that is there now")
    purge.add_argument("--yes", action="store_true", help="do not ask")


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: write a number above 0")
    return int(text)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
    more: str = "",
) -> argparse.ArgumentParser:
    described = f"{text[0].upper()}{text[1:]}. {more}".rstrip()
    parser = actions.add_parser(name, help=text, description=described)
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)
    return parser


def _list(arguments: argparse.Namespace) -> int:
    from kbroker.cli.dlq_summary import summaries

    with connection.admin(arguments) as client:
        found = summaries(client, arguments)
    if arguments.json:
        print_json(found)
        return OK
    if not found:
        note(
            f"there are no dead-letter topics: none is named {arguments.prefix}…, none ends with dead letters"
        )
        return OK
    print_table(list(_COLUMNS.values()), [list(row) for topic in found for row in _rows(topic)])
    for topic in found:
        if topic["looked_at"] < topic["offsets"]:
            counted = f"{topic['looked_at']:,} of {topic['offsets']:,} offsets"
            note(f"{topic['topic']}: only the newest {counted} were counted")
    return OK


def _rows(topic: dict[str, Any]) -> Iterator[list[object]]:
    for cause in topic["causes"]:
        reason = cause["reason"] or ("-" if cause["kind"] else "no dead letters, by their headers")
        row = {
            **cause,
            "topic": topic["topic"],
            "reason": reason if len(reason) <= _WIDEST else reason[: _WIDEST - 1] + "…",
            "oldest": times.iso(cause["oldest"]),
            "newest": times.iso(cause["newest"]),
        }
        yield [row[key] for key in _COLUMNS]
    if not topic["causes"]:
        yield [topic["topic"], None, None, None, 0, 0, None, None]


def _show(arguments: argparse.Namespace) -> int:
    from kbroker.cli.dlq_ledger import read_ledger
    from kbroker.cli.dlq_letters import partitions_of, read, reader, starts_of, wanted
    from kbroker.cli.record_format import compile_format

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
    from kbroker.cli.record_format import fields

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


def _replay(arguments: argparse.Namespace) -> int:
    from kbroker.cli.dlq_replay import replay

    return replay(arguments)


def _purge(arguments: argparse.Namespace) -> int:
    from kbroker.cli.topic import trim_targets, trimmed_topic

    make = connection.kafka().TopicPartition
    with connection.admin(arguments) as client:
        topic = trimmed_topic(client, arguments)
        bounds = connection.partition_offsets(client, [topic])
        targets = (
            _sent_back(arguments, topic, bounds)
            if arguments.replayed
            else trim_targets(client, arguments, topic)
        )
        number = sum(targets[key] - bounds[key][0] for key in targets)
        if not _agreed(arguments, number):
            note("nothing was deleted")
            return FAILED
        done = client.delete_records({make(*key): offset for key, offset in targets.items()})
    rows = [
        {
            "partition": each.partition,
            "deleted": done[each]["low_watermark"] - bounds[each.topic, each.partition][0],
            "log_start_offset": done[each]["low_watermark"],
        }
        for each in sorted(done)
    ]
    print_rows(arguments, rows, {"partition": "PARTITION", "deleted": "DELETED", "log_start_offset": "START"})
    return OK


def _sent_back(
    arguments: argparse.Namespace, topic: dict[str, Any], bounds: dict[tuple[str, int], tuple[int, int]]
) -> dict[tuple[str, int], int]:
    """Up to the first letter of each partition that was not sent back."""
    from kbroker.cli.dlq_ledger import read_ledger
    from kbroker.cli.dlq_letters import read, reader

    make = connection.kafka().TopicPartition
    targets = {}
    with reader(arguments) as consumer:
        ledger = read_ledger(consumer, topic["name"], str(topic.get("topic_id", "")))
        for key, (start, _) in bounds.items():
            targets[key] = start
            for each in read(consumer, [make(*key)]):
                if not ledger.has(each.record.partition, each.record.offset):
                    break
                targets[key] = each.record.offset + 1
    return targets


def _agreed(arguments: argparse.Namespace, number: int) -> bool:
    if arguments.yes or not number:
        return True
    asked = f"this deletes {plural(number, 'offset')} of {arguments.topic}"
    if not sys.stdin.isatty():
        raise CommandFailed(f"{asked}: write --yes if that is meant", USAGE)
    say(f"{asked}. Type yes to go on:")
    return sys.stdin.readline().strip().lower() == "yes"
