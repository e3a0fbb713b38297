"""`kbroker group`: consumer groups, their members, where they are, and where they shall be."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from kbroker.cli import connection, times
from kbroker.cli.errors import refused
from kbroker.cli.group_facts import LAG_COLUMNS, NOTHING_READ, describe, group_lag
from kbroker.cli.output import add_output_options, note, plural, print_json, print_rows, print_table, say
from kbroker.exit_codes import FAILED, OK, CommandFailed


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("group", help="consumer groups: list, describe, lag, reset, delete")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = _action(actions, "list", "the groups that there are", _list)
    listing.add_argument("--state", action="append", help="only groups in this state; any number of times")

    described = _action(actions, "describe", "state, members and lag of groups", _describe)
    described.add_argument("groups", nargs="+", metavar="GROUP")

    lag = _action(actions, "lag", "how far groups are behind", _lag)
    lag.add_argument("groups", nargs="*", metavar="GROUP", help="default: all")

    reset = _action(actions, "reset", "set the committed offsets of a group that has no members", _reset)
    reset.add_argument("group", metavar="GROUP")
    reset.add_argument(
        "-t",
        "--topic",
        action="append",
        help="only this topic; any number of times (default: all it has read)",
    )
    where = reset.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-start", action="store_true", help="to the log start: read everything again")
    where.add_argument("--to-end", action="store_true", help="to the log end: skip what is there")
    where.add_argument(
        "--to-offset", type=int, metavar="N", help="to this offset, or the nearest that there is"
    )
    where.add_argument("--to-time", type=times.timestamp_ms, metavar="TIME", help=times.HELP)
    where.add_argument("--shift", type=int, metavar="N", help="so many records on, or back if negative")
    reset.add_argument("--dry-run", action="store_true", help="only show what would change")

    delete = _action(actions, "delete", "forget groups and their offsets", _delete)
    delete.add_argument("groups", nargs="+", metavar="GROUP")


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)
    return parser


def _list(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        groups = client.list_groups(states_filter=arguments.state)
    rows = [
        {
            "group": group["group_id"],
            "state": group.get("group_state", "-"),
            "type": group.get("group_type", "classic"),
            "protocol": group["protocol_type"],
        }
        for group in sorted(groups, key=lambda group: str(group["group_id"]))
    ]
    if not rows and not arguments.json:
        note("there are no groups")
        return OK
    print_rows(arguments, rows, {"group": "GROUP", "state": "STATE", "type": "TYPE", "protocol": "PROTOCOL"})
    return OK


def _describe(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        groups = [describe(client, arguments, group) for group in arguments.groups]
    if arguments.json:
        print_json(groups)
        return OK
    for number, group in enumerate(groups):
        if number:
            say()
        say(f"{group['group']}: {group['state']}, {group['type']}, {plural(len(group['members']), 'member')}")
        if group["members"]:
            columns = ("MEMBER", "CLIENT", "HOST", "PARTITIONS")
            rows = [
                (
                    member["member_id"],
                    member["client_id"],
                    member["host"],
                    " ".join(member["partitions"]) or "-",
                )
                for member in group["members"]
            ]
            print_table(columns, rows)
        if group["lag"]:
            print_table(
                list(LAG_COLUMNS.values()), [[row[key] for key in LAG_COLUMNS] for row in group["lag"]]
            )
    return OK


def _lag(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        rows = group_lag(client, arguments, arguments.groups)
    if not rows and not arguments.json:
        note(NOTHING_READ)
        return OK
    print_rows(arguments, rows, LAG_COLUMNS)
    return OK


def _reset(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        targets = _targets(client, arguments)
        committed = client.list_group_offsets([arguments.group])[arguments.group]
        rows = [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "from": committed[partition].offset if partition in committed else None,
                "to": offset,
            }
            for partition, offset in sorted(targets.items())
        ]
        if not arguments.dry_run:
            _commit(client, arguments.group, targets)
    print_rows(arguments, rows, {"topic": "TOPIC", "partition": "PARTITION", "from": "FROM", "to": "TO"})
    if arguments.dry_run:
        note("nothing was changed: this was a dry run")
    return OK


def _commit(client: Any, group: str, targets: dict[Any, int]) -> None:
    kafka = connection.kafka()
    offsets = {
        partition: kafka.structs.OffsetAndMetadata(offset, "", None) for partition, offset in targets.items()
    }
    for partition, error in client.alter_group_offsets(group, offsets).items():
        if error.errno:
            raise refused(f"{partition.topic} {partition.partition} of group {group}", error.errno)


def _targets(client: Any, arguments: argparse.Namespace) -> dict[Any, int]:
    """The new offset of each partition, inside the log."""
    kafka = connection.kafka()
    committed = client.list_group_offsets([arguments.group])[arguments.group]
    names = arguments.topic or sorted({partition.topic for partition in committed})
    if not names:
        raise CommandFailed(
            f"group {arguments.group} has committed nothing: say for which topic with -t TOPIC"
        )
    offsets = connection.partition_offsets(client, connection.topic_metadata(client, names))
    bounds = {kafka.TopicPartition(*key): both for key, both in offsets.items()}
    if not arguments.topic:
        bounds = {partition: both for partition, both in bounds.items() if partition in committed}
    found = {}
    if arguments.to_time is not None:
        found = client.list_partition_offsets(dict.fromkeys(bounds, arguments.to_time))
    targets = {}
    for partition, (start, end) in bounds.items():
        if arguments.to_start:
            wanted = start
        elif arguments.to_end:
            wanted = end
        elif arguments.to_offset is not None:
            wanted = arguments.to_offset
        elif arguments.to_time is not None:
            wanted = found[partition].offset if found[partition].offset >= 0 else end
        elif partition in committed:
            wanted = committed[partition].offset + arguments.shift
        else:
            continue
        targets[partition] = max(start, min(wanted, end))
    return targets


def _delete(arguments: argparse.Namespace) -> int:
    errors = connection.kafka().errors
    with connection.admin(arguments) as client:
        results = client.delete_groups(arguments.groups)
    outcomes = []
    for group, result in results.items():
        problem = None
        if result != "OK":
            problem = str(refused(f"group {group}", getattr(errors, result).errno))
        outcomes.append({"group": group, "ok": problem is None, "result": problem or "deleted"})
    if arguments.json:
        print_json(outcomes)
    for outcome in outcomes:
        if not outcome["ok"]:
            note(f"kbroker: {outcome['result']}")
        elif not arguments.json:
            say(f"{outcome['group']}: {outcome['result']}")
    return OK if all(outcome["ok"] for outcome in outcomes) else FAILED
