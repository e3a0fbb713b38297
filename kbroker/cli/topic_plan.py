"""From declared topics and those that exist to the list of changes: what `kbroker apply` does.

A file declares topics, by name:

    defaults:                  # for every topic that does not say otherwise
      partitions: 3
    topics:
      orders:
        partitions: 6
        configs:
          retention.ms: 604800000
      clicks: {}

What a topic has set and the file does not declare goes back to its default. Partitions never become fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kbroker.exit_codes import CommandFailed

_FIELDS = {"partitions", "replicas", "configs"}


@dataclass(frozen=True, slots=True)
class Declared:
    name: str
    partitions: int | None = None
    replicas: int | None = None
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Existing:
    name: str
    partitions: int
    replicas: int
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    topic: str
    action: str  # create, add-partitions, set, unset, delete
    name: str | None = None  # of the config
    before: str | int | None = None
    after: str | int | None = None


def parse(document: Any, where: str) -> dict[str, Declared]:
    """The topics that a YAML document declares."""
    if not isinstance(document, dict) or not isinstance(document.get("topics"), dict):
        raise CommandFailed(f"{where}: declare topics by name under 'topics:', see 'kbroker apply --help'")
    if unknown := document.keys() - {"topics", "defaults"}:
        raise CommandFailed(f"{where}: {min(unknown)} is not known, only topics and defaults are")
    defaults = _fields(document.get("defaults"), f"{where}: defaults")
    declared = {}
    for name, given in document["topics"].items():
        at = f"{where}: topic {name}"
        own = _fields(given, at)
        configs = {**_configs(defaults.get("configs"), at), **_configs(own.get("configs"), at)}
        merged = {**defaults, **own}
        declared[str(name)] = Declared(
            str(name), _count(merged, "partitions", at), _count(merged, "replicas", at), configs
        )
    return declared


def _fields(given: Any, at: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise CommandFailed(f"{at}: give partitions, replicas and configs, not {given!r}")
    if unknown := {str(name) for name in given} - _FIELDS:
        raise CommandFailed(f"{at}: {min(unknown)} is not known, only {', '.join(sorted(_FIELDS))} are")
    return given


def _count(given: Mapping[str, Any], name: str, at: str) -> int | None:
    value = given.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise CommandFailed(f"{at}: {name} must be a whole number above 0, not {value!r}")
    return value


def _configs(given: Any, at: str) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise CommandFailed(f"{at}: configs are given as NAME: VALUE")
    return {str(name): _text(value) for name, value in given.items()}


def _text(value: Any) -> str:
    """A value of YAML as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value)


def plan(declared: Mapping[str, Declared], existing: Mapping[str, Existing], *, delete: bool) -> list[Change]:
    """What to do, topic by topic. Raises CommandFailed for what cannot be done."""
    changes: list[Change] = []
    for name, wanted in sorted(declared.items()):
        there = existing.get(name)
        changes += _creation(wanted) if there is None else _alterations(wanted, there)
    if delete:
        changes += [Change(name, "delete") for name in sorted(existing.keys() - declared.keys())]
    return changes


def _creation(wanted: Declared) -> list[Change]:
    changes = [Change(wanted.name, "create", after=wanted.partitions)]
    return changes + [
        Change(wanted.name, "set", name, None, value) for name, value in sorted(wanted.configs.items())
    ]


def _alterations(wanted: Declared, there: Existing) -> list[Change]:
    changes = []
    if wanted.partitions is not None and wanted.partitions != there.partitions:
        if wanted.partitions < there.partitions:
            raise CommandFailed(
                f"topic {wanted.name} has {there.partitions} partitions, the file wants {wanted.partitions}: "
                "they can only become more. Declare what it has, or delete the topic first"
            )
        changes.append(Change(wanted.name, "add-partitions", None, there.partitions, wanted.partitions))
    if wanted.replicas is not None and wanted.replicas != there.replicas:
        raise CommandFailed(
            f"topic {wanted.name} has {there.replicas} replicas, the file wants {wanted.replicas}: "
            "that needs a reassignment, which this command does not do"
        )
    for name, value in sorted(wanted.configs.items()):
        if there.configs.get(name) != value:
            changes.append(Change(wanted.name, "set", name, there.configs.get(name), value))
    changes += [
        Change(wanted.name, "unset", name, value)
        for name, value in sorted(there.configs.items())
        if name not in wanted.configs
    ]
    return changes
