"""`kbroker ping`: does a broker answer, is it ready? For health checks: quick, and told by the exit code."""

from __future__ import annotations

import argparse
import time
from typing import Any

from kbroker.cli import connection
from kbroker.cli.errors import unreachable
from kbroker.cli.output import add_output_options, print_json, say
from kbroker.exit_codes import FOUND, OK, UNREACHABLE, CommandFailed


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from kbroker.cli.http_port import add_http_option

    parser = commands.add_parser(
        "ping",
        help="does a broker answer? (for health checks)",
        description="Ask a broker for its API versions and say how long that took. With --ready: ask its "
        "HTTP port whether it may be sent work. Exit code 3: no answer; 4: it is not ready.",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.add_argument(
        "--ready",
        action="store_true",
        help="ask by HTTP whether it may be sent work: it is recovered, can write, and is not stopping",
    )
    add_http_option(parser)
    parser.add_argument(
        "--wait",
        type=float,
        default=0,
        metavar="SECONDS",
        help="keep trying for so long, for example until a broker has started, or is ready",
    )
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    return _run_ready(arguments) if arguments.ready else _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
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


def _run_ready(arguments: argparse.Namespace) -> int:
    from kbroker.cli.http_port import Unreachable, ask

    deadline = time.monotonic() + arguments.wait
    while True:
        started = time.monotonic()
        try:
            document = ask(arguments, "GET", "/readyz").document
            checks = document.get("checks") if isinstance(document, dict) else None
            if checks is None:
                raise Unreachable(f"{arguments.http} does not tell whether it is ready", UNREACHABLE)
        except Unreachable as error:
            failed: CommandFailed = error
        else:
            problems = [f"{name}: {check['problem']}" for name, check in checks.items() if not check["ok"]]
            if not problems:
                _tell_ready(arguments, (time.monotonic() - started) * 1000)
                return OK
            failed = CommandFailed(f"{arguments.http} is not ready: {'; '.join(problems)}", FOUND)
        if time.monotonic() >= deadline:
            raise failed
        time.sleep(0.05)


def _tell_ready(arguments: argparse.Namespace, took_ms: float) -> None:
    if arguments.quiet:
        return
    if arguments.json:
        print_json({"url": arguments.http, "ready": True, "ms": round(took_ms, 2)})
    else:
        say(f"{arguments.http} is ready, {took_ms:.1f} ms")


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
