"""`kbroker group reset`: the offsets from which a group without members goes on."""

from __future__ import annotations

import argparse
from typing import Any

from kbroker.cli import connection, times
from kbroker.cli.errors import refused
from kbroker.cli.group_facts import CLASSIC, SHARE, STREAMS, type_of
from kbroker.cli.group_members import described
from kbroker.cli.output import note, print_rows
from kbroker.exit_codes import OK, CommandFailed

Offsets = dict[Any, int | None]
"""TopicPartition → offset; None where the broker does not know it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "-t",
        "--topic",
        action="append",
        help="only this topic; any number of times (default: all it has read; of a streams group those "
        "that it does not write itself)",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-start", action="store_true", help="to the log start: read everything again")
    where.add_argument("--to-end", action="store_true", help="to the log end: skip what is there")
    where.add_argument(
        "--to-offset", type=int, metavar="N", help="to this offset, or the nearest that there is"
    )
    where.add_argument("--to-time", type=times.timestamp_ms, metavar="TIME", help=times.HELP)
    where.add_argument("--shift", type=int, metavar="N", help="so many records on, or back if negative")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")


def run(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        kind = next(
            (type_of(each) for each in client.list_groups() if each["group_id"] == arguments.group), CLASSIC
        )
        offsets = _offsets(client, arguments, kind)
        targets = _targets(client, arguments, kind, offsets)
        rows = [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "from": offsets.get(partition),
                "to": offset,
            }
            for partition, offset in sorted(targets.items())
        ]
        if not arguments.dry_run:
            _set(client, arguments, kind, targets)
    print_rows(arguments, rows, {"topic": "TOPIC", "partition": "PARTITION", "from": "FROM", "to": "TO"})
    if arguments.dry_run:
        note("nothing was changed: this was a dry run")
    return OK


def _offsets(client: Any, arguments: argparse.Namespace, kind: str) -> Offsets:
    """Where the group is: start offsets of a share group, committed ones of all others."""
    if kind == SHARE:
        from kbroker.cli.share_offsets import share_positions

        positions = share_positions(arguments, [arguments.group])[arguments.group]
        partition_type = connection.kafka().TopicPartition
        return {partition_type(*at): position.start_offset for at, position in positions.items()}
    committed = client.list_group_offsets([arguments.group])[arguments.group]
    return {partition: each.offset for partition, each in committed.items()}


def _set(client: Any, arguments: argparse.Namespace, kind: str, targets: dict[Any, int]) -> None:
    group = arguments.group
    if kind == SHARE:
        from kbroker.cli.share_offsets import set_share_offsets

        set_share_offsets(arguments, group, targets)
        return
    kafka = connection.kafka()
    offsets = {
        partition: kafka.structs.OffsetAndMetadata(offset, "", None) for partition, offset in targets.items()
    }
    for partition, error in client.alter_group_offsets(group, offsets).items():
        if error.errno:
            raise refused(f"{partition.topic} {partition.partition} of group {group}", error.errno)


def _targets(client: Any, arguments: argparse.Namespace, kind: str, offsets: Offsets) -> dict[Any, int]:
    """The new offset of each partition, inside the log."""
    kafka = connection.kafka()
    names = arguments.topic or _topics(client, arguments, kind, offsets)
    if not names:
        what = "read" if kind == SHARE else "committed"
        raise CommandFailed(f"group {arguments.group} has {what} nothing: say for which topic with -t TOPIC")
    found_bounds = connection.partition_offsets(client, connection.topic_metadata(client, names))
    bounds = {kafka.TopicPartition(*key): both for key, both in found_bounds.items()}
    if not arguments.topic:
        bounds = {partition: both for partition, both in bounds.items() if partition in offsets}
    found = {}
    if arguments.to_time is not None:
        found = client.list_partition_offsets(dict.fromkeys(bounds, arguments.to_time))
    targets = {}
    for partition, (start, end) in bounds.items():
        before = offsets.get(partition)
        if arguments.to_start:
            wanted = start
        elif arguments.to_end:
            wanted = end
        elif arguments.to_offset is not None:
            wanted = arguments.to_offset
        elif arguments.to_time is not None:
            wanted = found[partition].offset if found[partition].offset >= 0 else end
        elif before is not None:
            wanted = before + arguments.shift
        else:
            continue
        targets[partition] = max(start, min(wanted, end))
    if not targets:
        raise CommandFailed(f"group {arguments.group} has no offsets there that could be shifted")
    return targets


def _topics(client: Any, arguments: argparse.Namespace, kind: str, offsets: Offsets) -> list[str]:
    """All that the group has read. What a streams group writes for itself it goes on with."""
    topics = {partition.topic for partition in offsets}
    if kind == STREAMS:
        found = described(client, arguments, {arguments.group: kind})[arguments.group]
        topics -= {name for each in found["subtopologies"] for name in each["repartition_source_topics"]}
    return sorted(topics)
