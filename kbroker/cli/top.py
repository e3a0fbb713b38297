"""`kbroker top`: what a broker does now."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kbroker.cli import connection
from kbroker.cli.http_port import VARIABLE
from kbroker.cli.output import add_output_options, print_json
from kbroker.cli.times import duration_ms
from kbroker.exit_codes import OK, CommandFailed

if TYPE_CHECKING:
    from kbroker.cli.top_look import Look

_PORT = 8080
_PATIENCE = 3.0
"""Seconds that a port gets that is only guessed: a kbroker loads its HTTP API with the first connection."""
_SHORTEST_MS = 100


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "top",
        help="watch what a broker does: throughput, topics, groups, requests, memory, disk",
        description="Show throughput, the busiest topics, groups by lag, the slowest requests, memory and "
        "disk: in a terminal as a live view until q, else once, over one interval. A kbroker tells all of "
        "that by its HTTP port. Of any other Kafka its protocol tells records, log sizes, groups and lag; "
        "rates are those of the offsets, transaction markers among them.",
    )
    parser.add_argument(
        "--http",
        metavar="URL",
        help="look at a kbroker by this HTTP port alone. Without it the port of "
        f"${VARIABLE}, else {_PORT} of the broker's host, is asked, if it is that of the same cluster",
    )
    parser.add_argument(
        "--interval", type=duration_ms, default=2000, metavar="TIME", help="between two looks (default 2s)"
    )
    parser.add_argument("--once", action="store_true", help="two looks and one answer, also in a terminal")
    parser.add_argument(
        "-n",
        "--rows",
        type=int,
        default=10,
        metavar="N",
        help="rows of a table that is not live (default 10)",
    )
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    arguments.interval = max(arguments.interval, _SHORTEST_MS)
    if not arguments.once and not arguments.json and _is_terminal():
        from kbroker.cli.top_live import watch

        watch(arguments)
        return OK
    from kbroker.cli.top_rates import measured
    from kbroker.cli.top_text import print_text

    with looking(arguments) as look:
        before = look()
        time.sleep(arguments.interval / 1000)
        document = measured(before, look())
    if arguments.json:
        print_json(document)
    else:
        print_text(document, arguments.rows)
    return OK


def _is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


@contextmanager
def looking(arguments: argparse.Namespace) -> Iterator[Callable[[], Look]]:
    """The way to look that there is: by /metrics, or by Kafka's protocol."""
    from kbroker.cli import top_kafka, top_metrics

    if arguments.http is not None:
        yield lambda: top_metrics.look(arguments)
        return
    with connection.admin(arguments) as client:
        if (http := _same_cluster(client, arguments)) is not None:
            yield lambda: top_metrics.look(http)
        else:
            yield lambda: top_kafka.look(client, arguments)


def _same_cluster(client: Any, arguments: argparse.Namespace) -> argparse.Namespace | None:
    """Options for an HTTP port with metrics of the cluster that the client is connected to.

    Passwords go to no port that is only guessed.
    """
    from kbroker.cli import top_metrics

    url, patience = os.environ.get(VARIABLE), arguments.timeout
    if not url:
        patience = min(patience, _PATIENCE)
        if not connection.is_plaintext(arguments):
            return None
        host = connection.addresses(arguments.bootstrap)[0][0]
        url = f"http://{f'[{host}]' if ':' in host else host}:{_PORT}"
    asked = argparse.Namespace(**vars(arguments))
    asked.http, asked.timeout = url, patience
    try:
        found = top_metrics.look(asked)
    except CommandFailed:
        return None
    if found.cluster_id != client.describe_cluster()["cluster_id"]:
        return None
    asked.timeout = arguments.timeout
    return asked
