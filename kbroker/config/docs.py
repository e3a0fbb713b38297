"""docs/configuration.md, derived from the definitions: ``python -m kbroker.config.docs`` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.definition import ConfigDef, Update, to_text
from kbroker.config.loggers import LEVELS
from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kbroker.config.settings import environment_name
from kbroker.config.topic_configs import TOPIC_CONFIGS

_INTRODUCTION = """\
# Configuration

<!-- Written by `python -m kbroker.config.docs`. Change the definitions in kbroker/config/, not this page. -->

Settings carry Kafka's names where Kafka has one. Nothing has to be set. Where a setting is given more than
once, the first of these wins:

1. altered at run time for this broker (`kafka-configs.sh --entity-type brokers --entity-name 1 --alter …`),
2. altered at run time for the whole cluster (`--entity-default`),
3. on the command line: `kbroker serve --set name=value`, any number of times, or a flag of its own,
4. in the environment: `{log_retention}` is `log.retention.ms`, `{fsync}` is `kbroker.fsync`,
5. in the file given by `--config`,
6. the default below.

The file is YAML, with flat names (`log.retention.ms: 60000`) or nested ones. A Kafka `server.properties` is
taken as it is, if its name ends in `.properties`; one warning lists what does nothing in kbroker. Anywhere
else a name that is not on this page is an error that suggests the nearest one.

| flag | is |
|---|---|
| `--host H`, `--port P` | host and port of the first of `listeners` |
| `--advertise HOST:PORT` | `advertised.listeners` of the first listener |
| `--data DIR` | `log.dirs` |
| `--fsync` | `kbroker.fsync=true` |
| `--in-memory` | `kbroker.in.memory=true` |

Retention in hours, minutes or milliseconds is one quantity: a stronger layer that sets it in any unit hides
what weaker ones say. `broker.id` is `node.id`, and `log.dir` is `log.dirs`.
"""

_TOPICS = """\
Each topic may set these for itself (`kafka-topics.sh --create --config …`, `kafka-configs.sh --entity-type
topics`). What it does not set comes from the broker setting in the last column.
"""

_LOGGERS = f"""\
Every logger of the process, by its name, and `root` ({", ".join(LEVELS)}). Levels end with the process:
`kafka-configs.sh --entity-type broker-loggers --entity-name 1 --alter --add-config root=DEBUG`.
"""

_ACCEPTED = """\
So that Kafka's files and tools work unchanged, kbroker knows the rest of Kafka's configs too. It checks and
shows them, and they change nothing.
"""

_REFUSED = """\
These promise protection that kbroker does not give yet. A broker that took them would run open, so it does
not start, nor take them at run time, unless they are at their default.
"""

_CHANGES = {Update.READ_ONLY: "", Update.PER_BROKER: "broker", Update.CLUSTER_WIDE: "broker, cluster"}


def page() -> str:
    return "\n".join(_sections()) + "\n"


def _sections() -> Iterator[str]:
    yield _INTRODUCTION.format(
        log_retention=environment_name("log.retention.ms"), fsync=environment_name("kbroker.fsync")
    )
    yield "## Broker\n\nThe last column says for whom a setting may be altered at run time.\n"
    yield from _table(
        ("setting", "type", "default", "values", "meaning", "run time"),
        ((*_cells(each), _CHANGES[each.update]) for each in _honoured(BROKER_CONFIGS.values())),
    )
    yield f"\n## Topics\n\n{_TOPICS}"
    yield from _table(
        ("config", "type", "default", "values", "meaning", "broker setting"),
        ((*_cells(each), _names(each.synonyms)) for each in _honoured(TOPIC_CONFIGS.values())),
    )
    yield "\n## Groups\n"
    yield from _table(
        ("config", "type", "default", "values", "meaning", "broker setting"),
        ((*_cells(each), _names(each.synonyms)) for each in _honoured(GROUP_CONFIGS.values())),
    )
    yield "\n## Client metrics subscriptions\n"
    yield from _table(
        ("config", "type", "default", "values", "meaning"),
        (_cells(each) for each in CLIENT_METRICS_CONFIGS.values()),
    )
    yield f"\n## Loggers\n\n{_LOGGERS}"
    yield f"## Refused\n\n{_REFUSED}"
    yield from _in_kafka(each for each in BROKER_CONFIGS.values() if each.protects)
    yield f"\n## Accepted without effect\n\n{_ACCEPTED}"
    for title, definitions in (
        ("Topics", TOPIC_CONFIGS),
        ("Broker", BROKER_CONFIGS),
    ):
        yield f"### {title}\n"
        yield from _in_kafka(each for each in definitions.values() if not each.applies and not each.protects)
        yield ""


def _in_kafka(definitions: Iterable[ConfigDef]) -> Iterator[str]:
    """What configs that do nothing here do in Kafka."""
    return _table(
        ("config", "type", "default", "meaning in Kafka"),
        ((f"`{each.name}`", each.type.name.lower(), _default(each), each.doc) for each in definitions),
    )


def _honoured(definitions: Iterable[ConfigDef]) -> list[ConfigDef]:
    return [each for each in definitions if each.applies]


def _cells(definition: ConfigDef) -> tuple[str, ...]:
    values = "" if definition.validator is None else str(definition.validator)
    return (
        f"`{definition.name}`",
        definition.type.name.lower(),
        _default(definition),
        values,
        definition.doc,
    )


def _default(definition: ConfigDef) -> str:
    text = to_text(definition.default)
    shown = f"`{text}`" if text else ""
    return f"{definition.unset} (Kafka: {shown})" if definition.unset else shown


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in sorted(rows):
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    sys.stdout.write(page())
