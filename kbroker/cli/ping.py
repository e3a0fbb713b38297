"""`kbroker ping`: does a broker answer? For health checks: quick, and told by the exit code."""

from __future__ import annotations

import argparse
import time
from typing import Any

from kbroker.cli import connection
from kbroker.cli.errors import unreachable
from kbroker.cli.output import add_output_options, print_json, say
from kbroker.exit_codes import OK


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "ping",
        help="does a broker answer? (for health checks)",
        description="Ask a broker for its API versions and say how long that took. Exit code 3: no answer.",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.add_argument(
        "--wait",
        type=float,
        default=0,
        metavar="SECONDS",
        help="keep trying for so long, for example until a broker has started",
    )
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    deadline = time.monotonic() + arguments.wait
    tls = connection.tls_context(arguments)
    while True:
        reason: OSError | None = None
        for address in connection.addresses(arguments.bootstrap):
            started = time.monotonic()
            try:
                apis = _ask(address, arguments.timeout, tls)
            except OSError as error:
                reason = error
                continue
            _tell(arguments, address, apis, (time.monotonic() - started) * 1000)
            return OK
        if time.monotonic() >= deadline:
            raise unreachable(arguments.bootstrap, getattr(reason, "strerror", None) or reason)
        time.sleep(0.05)


def _ask(address: tuple[str, int], timeout: float, tls: Any) -> int:
    """How many APIs it has."""
    from kbroker.cli.wire_client import WireClient, WireError
    from kbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

    with WireClient(address, timeout, tls) as client:
        response = client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        if response.error_code:
            raise WireError(f"it answered with error {response.error_code}")
        return len(response.api_keys)


def took_ms(address: tuple[str, int], timeout: float, tls: Any) -> float:
    """How long it takes to answer. Raises OSError."""
    started = time.monotonic()
    _ask(address, timeout, tls)
    return (time.monotonic() - started) * 1000


def _tell(arguments: argparse.Namespace, address: tuple[str, int], apis: int, took_ms: float) -> None:
    if arguments.quiet:
        return
    where = f"{address[0]}:{address[1]}"
    if arguments.json:
        print_json({"address": where, "apis": apis, "ms": round(took_ms, 2)})
    else:
        say(f"{where} answers, {apis} APIs, {took_ms:.1f} ms")
