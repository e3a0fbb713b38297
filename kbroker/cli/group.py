"""`kbroker group`: groups of every type, their members, where they are, and where they shall be."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from kbroker.cli import connection, group_reset
from kbroker.cli.errors import refused
from kbroker.cli.group_facts import NOTHING_READ, STREAMS, describe, group_lag, lag_columns, type_of
from kbroker.cli.output import add_output_options, note, plural, print_json, print_rows, print_table, say
from kbroker.exit_codes import FAILED, OK


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("group", help="groups of consumers: list, describe, lag, reset, delete")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = _action(actions, "list", "the groups that there are", _list)
    listing.add_argument("--state", action="append", help="only groups in this state; any number of times")
    listing.add_argument(
        "--type",
        action="append",
        type=str.lower,
        choices=("classic", "consumer", "share", "streams"),
        help="only groups of this type; any number of times",
    )

    described = _action(actions, "describe", "state, members and lag of groups", _describe)
    described.add_argument("groups", nargs="+", metavar="GROUP")

    lag = _action(actions, "lag", "how far groups are behind", _lag)
    lag.add_argument("groups", nargs="*", metavar="GROUP", help="default: all")

    reset = _action(actions, "reset", "set the offsets of a group that has no members", group_reset.run)
    group_reset.add_arguments(reset)

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
        groups = client.list_groups()
    rows = [
        {
            "group": group["group_id"],
            "state": group.get("group_state", "-"),
            "type": type_of(group),
            "protocol": group["protocol_type"],
        }
        for group in sorted(groups, key=lambda group: str(group["group_id"]))
    ]
    rows = [
        row
        for row in rows
        if _is_among(row["state"], arguments.state) and _is_among(row["type"], arguments.type)
    ]
    if not rows and not arguments.json:
        note("there are no such groups" if groups else "there are no groups")
        return OK
    print_rows(arguments, rows, {"group": "GROUP", "state": "STATE", "type": "TYPE", "protocol": "PROTOCOL"})
    return OK


def _is_among(value: str, wanted: Sequence[str] | None) -> bool:
    return not wanted or value.lower() in (each.lower() for each in wanted)


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
        if group.get("missing_source_topics"):
            say(f"its source topics {', '.join(group['missing_source_topics'])} are not there")
        if group["members"]:
            columns = _TASKS if group["type"] == STREAMS else _PARTITIONS
            rows = [[_joined(member[key]) for key in columns] for member in group["members"]]
            print_table(list(columns.values()), rows)
        if group["lag"]:
            columns = lag_columns(group["lag"])
            print_table(list(columns.values()), [[row[key] for key in columns] for row in group["lag"]])
    return OK


_MEMBER = {"member_id": "MEMBER", "client_id": "CLIENT", "host": "HOST"}
_PARTITIONS = {**_MEMBER, "partitions": "PARTITIONS"}
_TASKS = {**_MEMBER, "active_tasks": "TASKS", "standby_tasks": "STANDBYS"}


def _joined(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " ".join(value) or "-"


def _lag(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        rows = group_lag(client, arguments, arguments.groups)
    if not rows and not arguments.json:
        note(NOTHING_READ)
        return OK
    print_rows(arguments, rows, lag_columns(rows))
    return OK


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
