"""`kbroker config`: the configs of topics, brokers and groups, read and altered at run time."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kbroker.cli import connection
from kbroker.cli.output import add_output_options, note, print_json, print_rows, say
from kbroker.exit_codes import FAILED, OK, CommandFailed

_ERROR_CLASS = re.compile(r"^\[Error -?\d+\] (\w+: )?")  # in front of what the broker says
_KINDS = ("topic", "broker", "group", "client_metrics")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("config", help="read and alter configs of topics, brokers, groups")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    get = actions.add_parser("get", help="show configs", description="Show configs that were set, or all.")
    _add_resource(get)
    get.add_argument("names", nargs="*", metavar="CONFIG", help="only these")
    get.add_argument("--all", action="store_true", help="also those that have their default")
    get.set_defaults(run=_get)
    put = actions.add_parser("set", help="alter configs", description="Alter configs at run time.")
    _add_resource(put)
    put.add_argument("configs", nargs="*", metavar="NAME=VALUE")
    put.add_argument(
        "--unset",
        metavar="NAME",
        action="append",
        default=[],
        help="back to the default; any number of times",
    )
    put.add_argument("--dry-run", action="store_true", help="let the broker check it, change nothing")
    put.set_defaults(run=_set)


def _add_resource(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=_KINDS, help="what it is a config of")
    parser.add_argument("name", metavar="NAME", help="of the topic or group; the id of a broker")
    add_output_options(parser)
    connection.add_connection_options(parser)


def _resource_name(kind: str, name: str) -> str:
    if kind == "broker" and not name.isdecimal():
        raise CommandFailed(f"{name} is no broker id: 'kbroker cluster info' shows them")
    return name


def _get(arguments: argparse.Namespace) -> int:
    kafka = connection.kafka()
    name = _resource_name(arguments.kind, arguments.name)
    with connection.admin(arguments) as client:
        if arguments.kind == "topic":
            connection.topic_metadata(client, [name])
        resource = kafka.admin.ConfigResource(arguments.kind, name)
        described = client.describe_configs([resource], config_filter="all")
    configs: dict[str, dict[str, Any]] = described.get(arguments.kind, {}).get(name, {})
    unknown = [each for each in arguments.names if each not in configs]
    if unknown:
        from kbroker.cli.suggestions import did_you_mean

        raise CommandFailed(
            f"{arguments.kind} {arguments.name} has no config {unknown[0]}: "
            f"'kbroker config get {arguments.kind} {arguments.name} --all' lists them"
            f"{did_you_mean(unknown[0], configs)}"
        )
    rows = [
        {
            "name": name,
            "value": None if config.get("is_sensitive") else config["value"],
            "source": config["config_source"],
            "read_only": config["read_only"],
        }
        for name, config in sorted(configs.items())
        if (name in arguments.names if arguments.names else arguments.all or _was_set(config))
    ]
    if not rows and not arguments.json:
        note(f"nothing was set on {arguments.kind} {arguments.name}: --all shows the defaults too")
        return OK
    print_rows(arguments, rows, {"name": "CONFIG", "value": "VALUE", "source": "SOURCE"})
    return OK


def _was_set(config: Mapping[str, Any]) -> bool:
    return str(config["config_source"]) != "DEFAULT_CONFIG"


def _set(arguments: argparse.Namespace) -> int:
    from kbroker.cli.topic import parse_configs

    configs = parse_configs(arguments.configs)
    if not configs and not arguments.unset:
        raise CommandFailed("nothing to alter: give NAME=VALUE or --unset NAME")
    name = _resource_name(arguments.kind, arguments.name)
    return alter(arguments, arguments.kind, [name], configs, arguments.unset, dry_run=arguments.dry_run)


def alter(
    arguments: argparse.Namespace,
    kind: str,
    names: Sequence[str],
    configs: Mapping[str, str],
    unset: Sequence[str],
    *,
    dry_run: bool = False,
) -> int:
    """Alter the configs of several resources alike, and say what became of it."""
    if kind == "broker":
        _warn_of_unknown(configs)
    with connection.admin(arguments) as client:
        results = alter_configs(client, kind, names, configs, unset, dry_run=dry_run)
        altered = [name for name, problem in results.items() if problem is None]
        if altered and not dry_run:
            connection.until_visible(
                client, lambda client: _in_force(client, kind, altered, configs, unset), arguments
            )
    done = "could be altered" if dry_run else "altered"
    outcomes = [
        {kind: name, "ok": problem is None, "result": problem or done} for name, problem in results.items()
    ]
    if arguments.json:
        print_json(outcomes)
    for outcome in outcomes:
        line = f"{kind} {outcome[kind]}: {outcome['result']}"
        if not outcome["ok"]:
            note(f"kbroker: {line}")
        elif not arguments.json:
            say(line)
    return OK if all(outcome["ok"] for outcome in outcomes) else FAILED


def _warn_of_unknown(configs: Mapping[str, str]) -> None:
    """Brokers store configs that they do not know, for plugins: a misspelled one does nothing."""
    from kbroker.cli.suggestions import of_configs, unknown_configs

    for name in unknown_configs("broker", configs):
        note(f"kbroker: Kafka has no broker config {name}, it is only stored{of_configs('broker', [name])}")


def _in_force(
    client: Any, kind: str, names: Sequence[str], configs: Mapping[str, str], unset: Sequence[str]
) -> bool:
    admin = connection.kafka().admin
    described = client.describe_configs(
        [admin.ConfigResource(kind, name) for name in names], config_filter="modified"
    )
    for name in names:
        found = described.get(kind, {}).get(name, {})
        if any(each in found for each in unset):
            return False
        if any(found.get(each, {}).get("value") != value for each, value in configs.items()):
            return False
    return True


def alter_configs(
    client: Any,
    kind: str,
    names: Sequence[str],
    configs: Mapping[str, str],
    unset: Sequence[str] = (),
    *,
    dry_run: bool = False,
) -> dict[str, str | None]:
    """Alter; returns for each resource what the broker had against it."""
    admin = connection.kafka().admin
    changes: dict[str, Any] = {name: (admin.AlterConfigOp.SET, value) for name, value in configs.items()}
    changes |= dict.fromkeys(unset, (admin.AlterConfigOp.DELETE, None))
    resources = [admin.ConfigResource(kind, name, dict(changes)) for name in names]
    answer = client.alter_configs(resources, validate_only=dry_run, raise_on_unknown=False)
    said: dict[str, str] = answer.get(kind, {})
    if all(said.get(name) == "OK" for name in names):
        return dict.fromkeys(names)
    from kbroker.cli.suggestions import of_configs

    hint = of_configs(kind, changes)
    return {
        name: None
        if said.get(name) == "OK"
        else _ERROR_CLASS.sub("", said.get(name, "no answer")).rstrip(". ") + hint
        for name in names
    }
