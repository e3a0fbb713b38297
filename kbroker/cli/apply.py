"""`kbroker apply`: bring topics to the state that a file declares, after showing what that changes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from typing import Any

from kbroker.cli import connection
from kbroker.cli.output import add_output_options, note, plural, print_json, say
from kbroker.cli.topic import refused_topic
from kbroker.exit_codes import FAILED, FOUND, OK, CommandFailed

_DESCRIPTION = """\
Bring topics to the state that a YAML file declares. The plan is printed first; nothing happens where nothing
differs. Topics that are not in the file are left alone, unless --delete is given.

    defaults:
      partitions: 3
    topics:
      orders:
        partitions: 6
        configs:
          retention.ms: 604800000
          cleanup.policy: [compact, delete]
      clicks: {}"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "apply",
        help="bring topics to the state that a file declares",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the YAML file; - is standard input")
    parser.add_argument("--delete", action="store_true", help="delete topics that are not in the file")
    parser.add_argument("--dry-run", action="store_true", help="only print the plan")
    parser.add_argument(
        "--check", action="store_true", help="only print the plan; exit code 4 if it is not empty"
    )
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from kbroker.cli import topic_plan

    declared = topic_plan.parse(_read(arguments.file), arguments.file)
    with connection.admin(arguments) as client:
        changes = topic_plan.plan(declared, _existing(client), delete=arguments.delete)
        if not arguments.json:
            _print(changes)
        failures: dict[str, str] = {}
        if not arguments.dry_run and not arguments.check:
            failures = _execute(client, declared, changes, arguments)
            if not failures:
                # Metadata may lag behind: whoever asks next shall see what was applied.
                connection.until_visible(
                    client,
                    lambda client: not topic_plan.plan(declared, _existing(client), delete=arguments.delete),
                    arguments,
                )
    if arguments.json:
        print_json({"changes": [asdict(change) for change in changes], "failures": failures})
    for failure in failures.values():
        note(f"kbroker: {failure}")
    if failures:
        return FAILED
    return FOUND if arguments.check and changes else OK


def _read(path: str) -> Any:
    import yaml

    try:
        if path == "-":
            return yaml.safe_load(sys.stdin)
        with open(path, encoding="utf-8") as file:
            return yaml.safe_load(file)
    except yaml.YAMLError as error:
        raise CommandFailed(f"{path} is not YAML: {' '.join(str(error).split())}") from error


def _existing(client: Any) -> dict[str, Any]:
    from kbroker.cli.topic_plan import Existing

    topics = [topic for topic in connection.topic_metadata(client) if not topic["is_internal"]]
    admin = connection.kafka().admin
    resources = [admin.ConfigResource("TOPIC", topic["name"]) for topic in topics]
    described = client.describe_configs(resources, config_filter="modified") if resources else {}
    configs = described.get("topic", {})
    return {
        topic["name"]: Existing(
            topic["name"],
            len(topic["partitions"]),
            max((len(each["replica_nodes"]) for each in topic["partitions"]), default=0),
            {
                name: config["value"]
                for name, config in configs.get(topic["name"], {}).items()
                if config["config_source"] == "DYNAMIC_TOPIC_CONFIG"
            },
        )
        for topic in topics
    }


def _print(changes: list[Any]) -> None:
    if not changes:
        say("nothing to change")
        return
    count = {"+": 0, "~": 0, "-": 0}
    for topic, group in groupby(changes, key=lambda change: change.topic):
        of_topic = list(group)
        sign = {"create": "+", "delete": "-"}.get(of_topic[0].action, "~")
        count[sign] += 1
        say(f"{sign} {topic}")
        for line in _lines(of_topic):
            say(f"    {line}")
    say(f"plan: {count['+']} to create, {count['~']} to alter, {count['-']} to delete")


def _lines(changes: list[Any]) -> Iterator[str]:
    for change in changes:
        if change.action == "create" and change.after is not None:
            yield f"+ partitions: {change.after}"
        elif change.action == "add-partitions":
            yield f"~ partitions: {change.before} → {change.after}"
        elif change.action == "set" and change.before is None:
            yield f"+ {change.name}: {change.after}"
        elif change.action == "set":
            yield f"~ {change.name}: {change.before} → {change.after}"
        elif change.action == "unset":
            yield f"- {change.name}: {change.before}"


def _execute(
    client: Any, declared: dict[str, Any], changes: list[Any], arguments: argparse.Namespace
) -> dict[str, str]:
    """Carry out the plan, topic by topic; returns what went wrong."""
    failures: dict[str, str] = {}
    for topic, group in groupby(changes, key=lambda change: change.topic):
        problem = _change_topic(client, declared.get(topic), topic, list(group))
        if problem is not None:
            failures[topic] = problem
    if changes and not arguments.json:
        done = len({change.topic for change in changes}) - len(failures)
        say(f"applied to {plural(done, 'topic')}")
    return failures


def _change_topic(client: Any, declared: Any, topic: str, changes: list[Any]) -> str | None:
    from kbroker.cli.config import alter_configs

    actions = {change.action for change in changes}
    if "delete" in actions:
        (result,) = client.delete_topics([topic], raise_errors=False)["topics"]
        return _problem(topic, result["error_code"], result.get("error_message"))
    if "create" in actions:
        asked = {
            "num_partitions": declared.partitions or -1,
            "replication_factor": declared.replicas or -1,
            "configs": declared.configs,
        }
        (result,) = client.create_topics({topic: asked}, raise_errors=False)["topics"]
        return _problem(topic, result["error_code"], result.get("error_message"), declared.configs)
    if "add-partitions" in actions:
        answer = client.create_partitions({topic: declared.partitions}, raise_errors=False).results[0]
        if answer.error_code:
            return _problem(topic, answer.error_code, answer.error_message)
    altered = {change.name: str(change.after) for change in changes if change.action == "set"}
    unset = [change.name for change in changes if change.action == "unset"]
    if not altered and not unset:
        return None
    said = alter_configs(client, "topic", [topic], altered, unset)[topic]
    return None if said is None else f"topic {topic}: {said}"


def _problem(topic: str, code: int, message: str | None, configs: Iterable[str] = ()) -> str | None:
    return str(refused_topic(topic, code, message, configs)) if code else None
