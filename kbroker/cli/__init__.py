"""The command line. Each command is a module here; only the one that runs is loaded."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kbroker import __version__

# Exit codes that scripts can rely on.
OK, FAILED, USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    from kbroker.cli import serve

    parser = argparse.ArgumentParser(prog="kbroker", description="Kafka without the JVM.")
    parser.add_argument("--version", action="version", version=f"kbroker {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    serve.add_parser(commands)
    given = parser.parse_args(arguments)
    try:
        return int(given.run(given))
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
