"""Writes docs/cli.md from the parsers: `python -m docs.cli`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from kbroker.cli import make_parser
from kbroker.cli.completion import walk

TARGET = Path(__file__).with_name("cli.md")

_HEAD = """\
# The command line

Derived from the parsers in kbroker/cli/ by docs/cli.py.

`kbroker` runs the broker, and works with it: all but `serve`, `control` and the offline commands talk plain
Kafka, and so to any Kafka.

- **Address**: `-b HOST:PORT`, else the environment variable `KBROKER_BOOTSTRAP`, else 127.0.0.1:9092. `-X`
  hands any config to the client (kafka-python), with Kafka's or librdkafka's names: `-X
  security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=… -X sasl.password=…`.
- **Output**: tables in a terminal, aligned columns in a pipe, JSON with `--json`. What is not data goes to
  standard error.
- **Exit codes**: 0 done · 1 could not be done · 2 wrong command line · 3 no broker answers · 4 a check found
  something (damage, a bad setup, lag, pending changes) · 130 Ctrl-C.
- **Completion**: `source <(kbroker completion bash)`; zsh and fish, too. Names of topics and groups come from
  the broker.
- **Habits**: flags of Kafka's and kcat's commands are understood: `--bootstrap-server`, `--topic`, `-t`,
  `--from-beginning`, `--max-messages`, `--replication-factor`, `--group`.
"""


def text() -> str:
    os.environ.pop("KBROKER_BOOTSTRAP", None)
    parts = [_HEAD]
    for path, parser in walk(make_parser()):
        if not path:
            continue
        level = "##" if len(path) == 1 else "###"
        parts.append(f"\n{level} kbroker {' '.join(path)}\n\n```\n{_help(parser)}```\n")
    return "".join(parts)


def _help(parser: argparse.ArgumentParser) -> str:
    """The same on every machine: at one width, without what each Python version writes otherwise."""
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            action.help = argparse.SUPPRESS
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
