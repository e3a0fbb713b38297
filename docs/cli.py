"""Writes docs/cli.md from the parsers, and from a run of some commands on a broker: `python -m docs.cli`."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from kbroker.cli import make_parser
from kbroker.cli.completion import walk
from kbroker.testing import KafkaBroker

TARGET = Path(__file__).with_name("cli.md")

_HEAD = """\
# The command line

Derived from the parsers in kbroker/cli/, and from a run of the commands in the tour, by docs/cli.py.

`kbroker` runs the broker, and works with it: all but `serve`, `control` and the offline commands talk plain
Kafka, and so to any Kafka.

- **Address**: `-b HOST:PORT`, else the environment variable `KBROKER_BOOTSTRAP`, else 127.0.0.1:9092.
- **Output**: tables in a terminal, aligned columns in a pipe, JSON with `--json`. What is not data goes to
  standard error.
- **Exit codes**: 0 done · 1 could not be done · 2 wrong command line · 3 no broker answers · 4 a check found
  something (damage, a bad setup, lag, pending changes) · 130 Ctrl-C.
- **Completion**: `source <(kbroker completion bash)`; zsh and fish, too. Names of topics and groups come from
  the broker.
- **Habits**: flags of Kafka's and kcat's commands are understood: `--bootstrap-server`, `--topic`, `-t`,
  `--from-beginning`, `--max-messages`, `--replication-factor`, `--group`.
"""

_TOUR = """\
kbroker topic create orders -p 2 -c retention.ms=3600000
seq 5 | kbroker produce orders -p 0
echo '{"key": "k", "value": {"total": 9}, "headers": {"h": "x"}}' | kbroker produce orders --from-json -p 1
kbroker consume orders -p 0 -o -2 -f '%t[%p] @%o: %s\\n'
kbroker consume orders -p 1 -f '%k = %s (%h)\\n'
kbroker consume orders -p 0 -o 99
kbroker group reset billing --to-offset 3 -t orders
kbroker group list
kbroker lag billing --max 1; echo "exit code $?"
kbroker topic describe orders
kbroker topic alter orders -c retentoin.ms=1
echo 'topics: {orders: {partitions: 3}, clicks: {}}' | kbroker apply - --check; echo "exit code $?"
kbroker docs configuration log.retention.hours | head -1"""

_CONNECTION = """
## Connection options

Commands that talk to a broker take these, too. `-X` hands any config to the client (kafka-python), with
Kafka's or librdkafka's names: `-X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=…
-X sasl.password=…`.
"""


def text() -> str:
    os.environ.pop("KBROKER_BOOTSTRAP", None)
    parts = [_HEAD, f"\n## A tour\n\n```\n{_tour()}```\n"]
    commands = []
    connection = ""
    for path, parser in walk(make_parser()):
        if not path:
            continue
        own = _help_of_connection(parser)
        connection = connection or own
        level = "##" if len(path) == 1 else "###"
        also = "\nAnd the [connection options](#connection-options).\n" if own else ""
        commands.append(f"\n{level} kbroker {' '.join(path)}\n\n```\n{_help(parser)}```\n{also}")
    parts += [f"{_CONNECTION}\n```\n{connection}```\n", *commands]
    return "".join(parts)


def _tour() -> str:
    """Each command with what it printed, in one place with one broker."""
    shown = []
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "KBROKER_BOOTSTRAP": broker.bootstrap_servers}
        for command in _TOUR.splitlines():
            script = f'kbroker() {{ {shlex.quote(sys.executable)} -m kbroker "$@"; }}; {command}'
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
            )
            shown.append(f"$ {command}\n{done.stdout}")
    return "\n".join(shown)


def _help_of_connection(parser: argparse.ArgumentParser) -> str:
    """The options that commands share, which then are not shown with the parser; empty where it has none."""
    for group in parser._action_groups:
        if group.title == "connection":
            alone = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
            for action in group._group_actions:
                alone._add_action(action)
            shown = _at_one_width(alone).removeprefix("options:\n")
            for action in group._group_actions:
                action.help = argparse.SUPPRESS
            return shown
    return ""


def _help(parser: argparse.ArgumentParser) -> str:
    """The same on every machine: at one width, without what each Python version writes otherwise."""
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            action.help = argparse.SUPPRESS
    return _at_one_width(parser)


def _at_one_width(parser: argparse.ArgumentParser) -> str:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        return parser.format_help()
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


if __name__ == "__main__":
    TARGET.write_text(text())
