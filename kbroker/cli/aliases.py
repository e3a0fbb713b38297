"""What users of Kafka's and kcat's commands type, as kbroker spells it."""

from __future__ import annotations

from collections.abc import Sequence

_POSITIONAL = ""  # the flag's value is what kbroker takes without a flag
_DROPPED = None  # kbroker does so anyway

_TOPIC: dict[str, str | None] = {"-t": _POSITIONAL, "--topic": _POSITIONAL}
_GROUP: dict[str, str | None] = {"--group": _POSITIONAL}

# Command, or command and action → foreign flag → what it is here.
_ALIASES: dict[tuple[str, ...], dict[str, str | None]] = {
    ("consume",): {
        **_TOPIC,
        "--from-beginning": _DROPPED,
        "-e": _DROPPED,
        "--include": _POSITIONAL,
        "--max-messages": "--count",
        "-c": "--count",
        "-J": "--json",
    },
    ("produce",): _TOPIC,
    ("topic", "create"): {**_TOPIC, "--replication-factor": "--replicas"},
    **{("topic", action): _TOPIC for action in ("describe", "alter", "delete", "add-partitions", "trim")},
    **{("group", action): _GROUP for action in ("describe", "lag", "reset", "delete")},
    ("lag",): _GROUP,
}
COMMANDS = frozenset(path[0] for path in _ALIASES)


def translated(given: Sequence[str]) -> list[str]:
    """The command line with kbroker's flags; positional arguments that had a flag come first."""
    path = tuple(given[:1]) if tuple(given[:1]) in _ALIASES else tuple(given[:2])
    aliases = _ALIASES.get(path)
    if aliases is None:
        return list(given)
    named: list[str] = []
    rest: list[str] = []
    words = iter(given[len(path) :])
    for word in words:
        if word == "--":
            rest += [word, *words]
            break
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        alias = aliases.get(flag, flag)
        if alias == _POSITIONAL:
            named += [value] if equals else [next(words, flag)]
        elif alias is not _DROPPED:
            rest.append(alias + equals + value)
    return [*path, *named, *rest]
