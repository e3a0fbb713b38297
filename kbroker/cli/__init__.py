"""The command line. Each command is a module here; only the one that runs is loaded.

A command module has ``add_parser(commands)``, which sets ``run`` on its parsers, and imports what is heavy
inside the functions that need it: building a parser must cost next to nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from kbroker import __version__
from kbroker.exit_codes import INTERRUPTED, OK

# Commands in the order of --help, each with the module that has it.
COMMANDS = {
    "serve": "serve",
    "topic": "topic",
    "produce": "produce",
    "consume": "consume",
    "group": "group",
    "lag": "lag",
    "top": "top",
    "dlq": "dlq",
    "trace": "trace",
    "config": "config",
    "cluster": "cluster",
    "user": "user",
    "acl": "acl",
    "apply": "apply",
    "pipeline": "pipeline",
    "ping": "ping",
    "doctor": "doctor",
    "tls": "tls",
    "bench": "bench",
    "control": "control",
    "wire": "wire",
    "dump": "dump",
    "verify": "verify",
    "import": "import_data",
    "backup": "backup",
    "restore": "restore",
    "docs": "docs",
    "completion": "completion",
}

# Those that also take flags of Kafka's and kcat's commands (aliases.py).
_TRANSLATED = ("consume", "produce", "topic", "group", "lag")


class _Parser(argparse.ArgumentParser):
    """Says also what a misspelled word was probably meant to be."""

    def error(self, message: str) -> NoReturn:
        from kbroker.cli.suggestions import of_usage

        super().error(message + of_usage(self, message))


def make_parser(names: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser with the named commands: with all of them it is the whole command line."""
    parser = _Parser(
        prog="kbroker",
        description="Kafka without the JVM: a broker, and the commands to work with it or with any Kafka.",
        epilog="kbroker COMMAND --help tells more; kbroker docs has the documentation.",
    )
    parser.add_argument("--version", action="version", version=f"kbroker {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names:
        import_module(f"kbroker.cli.{COMMANDS[name]}").add_parser(commands)
    return parser


def _parsed(parser: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Namespace:
    parsed, unknown = parser.parse_known_args(given)
    if unknown:
        from kbroker.cli.suggestions import parser_of

        parser_of(parser, parsed).error(f"unrecognized arguments: {' '.join(unknown)}")
    return parsed


def drop_output() -> None:
    """Let Python not complain, now or at exit, that nobody reads the output any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    known = given[:1] if given and given[0] in COMMANDS else tuple(COMMANDS)
    if given[:1] and given[0] in _TRANSLATED:
        from kbroker.cli.aliases import translated

        given = translated(given)
    parsed = _parsed(make_parser(known), given)
    code = OK
    try:
        code = int(parsed.run(parsed))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        drop_output()  # whoever read it has seen enough
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from kbroker.cli.errors import explain
        from kbroker.cli.program import as_started

        explained = explain(error, parsed)
        if explained is None:
            raise
        print(f"kbroker: {as_started(str(explained))}", file=sys.stderr)  # noqa: T201
        return explained.exit_code
