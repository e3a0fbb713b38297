"""Dead letters as commands read them: the records of a topic, each with where it came from, and filters."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kbroker.cli import connection, times
from kbroker.dead_letters.origin import Headers, Origin, letter
from kbroker.exit_codes import USAGE, CommandFailed

_POLL_MS = 50


class DeadLetter(NamedTuple):
    record: Any
    """As kafka-python has it."""
    origin: Origin | None
    """None: its headers do not tell."""
    headers: Headers
    """Those that the record had before it died."""


def add_filters(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("which dead letters")
    which.add_argument("-g", "--group", help="of this share group, connector or pipeline")
    which.add_argument("--from-topic", metavar="TOPIC", help="that came from this topic")
    which.add_argument("--from-partition", type=int, metavar="N", help="that came from this partition of it")
    which.add_argument(
        "--reason", metavar="TEXT", help="whose reason has this text in it, in capitals or not"
    )
    which.add_argument(
        "-p", "--partition", type=int, action="append", help="in this partition; any number of times"
    )
    which.add_argument(
        "-o", "--offset", type=_offsets, metavar="N[-M]", help="at this offset, or from one to another"
    )
    which.add_argument(
        "--since", type=times.timestamp_ms, metavar="TIME", help=f"not older than this: {times.HELP}"
    )
    which.add_argument("--until", type=times.timestamp_ms, metavar="TIME", help="older than this")
    which.add_argument("-n", "--limit", type=int, metavar="N", help="at most so many")


def _offsets(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: write an offset such as 17, or two such as 17-20")
    return int(first), int(last if dash else first)


def wanted(arguments: argparse.Namespace, found: DeadLetter) -> bool:
    """Whether the filters let it pass."""
    record, origin, _ = found
    if arguments.offset is not None and not arguments.offset[0] <= record.offset <= arguments.offset[1]:
        return False
    if arguments.since is not None and record.timestamp < arguments.since:
        return False
    if arguments.until is not None and record.timestamp >= arguments.until:
        return False
    asked = (arguments.group, arguments.from_topic, arguments.from_partition, arguments.reason)
    if origin is None:
        return asked == (None, None, None, None)
    reason = (origin.reason or "").lower()
    return (
        arguments.group in (None, origin.group)
        and arguments.from_topic in (None, origin.topic)
        and arguments.from_partition in (None, origin.partition)
        and (arguments.reason is None or arguments.reason.lower() in reason)
    )


def reader(arguments: argparse.Namespace) -> Any:
    """A consumer that sees what is committed, and does not wait long at the end."""
    return connection.consumer(
        arguments, group_id=None, auto_offset_reset="earliest", isolation_level="read_committed",
        max_poll_records=500, fetch_max_wait_ms=_POLL_MS,
    )  # fmt: skip


def partitions_of(consumer: Any, topic: str, only: Sequence[int] | None = None) -> list[Any]:
    known = consumer.partitions_for_topic(topic)
    if not known:
        raise CommandFailed(f"there is no topic {topic}: see 'kbroker dlq list'")
    if missing := set(only or ()) - set(known):
        raise CommandFailed(f"topic {topic} has no partition {min(missing)}, only 0 to {max(known)}", USAGE)
    return [connection.kafka().TopicPartition(topic, each) for each in sorted(only or known)]


def read(
    consumer: Any, partitions: Sequence[Any], starts: Mapping[Any, int] | None = None
) -> Iterator[DeadLetter]:
    """The records that are there now, one partition after the other, each from its start on."""
    begins = consumer.beginning_offsets(partitions)
    ends = consumer.end_offsets(partitions)
    for partition in partitions:
        at = max(begins[partition], (starts or {}).get(partition, 0))
        if at >= ends[partition]:
            continue
        consumer.assign([partition])
        consumer.seek(partition, at)
        while consumer.position(partition) < ends[partition]:
            for records in consumer.poll(timeout_ms=_POLL_MS).values():
                for record in records:
                    if record.offset < ends[partition]:
                        yield dead_letter(record)


def dead_letter(record: Any) -> DeadLetter:
    found = letter(record.headers)
    return DeadLetter(record, None, record.headers) if found is None else DeadLetter(record, *found)


def starts_of(consumer: Any, partitions: Sequence[Any], arguments: argparse.Namespace) -> dict[Any, int]:
    """The first offset that the filters can let pass."""
    starts = dict.fromkeys(partitions, 0 if arguments.offset is None else arguments.offset[0])
    if arguments.since is not None:
        ends = consumer.end_offsets(partitions)
        found = consumer.offsets_for_times(dict.fromkeys(partitions, arguments.since))
        for partition in partitions:
            at = found.get(partition)
            first = ends[partition] if at is None else at.offset
            starts[partition] = max(starts[partition], first)
    return starts
