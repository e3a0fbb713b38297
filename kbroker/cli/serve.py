"""`kbroker serve`: run the broker."""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import sys
import time
from typing import TYPE_CHECKING

from kbroker import __version__

if TYPE_CHECKING:
    from kbroker.config.listeners import Listener
    from kbroker.config.settings import Settings
    from kbroker.observability.log_limit import LogLimit
    from kbroker.server import Server

_NEW_OBJECTS = 10_000  # how many more there are before the garbage collector looks for cycles; Python: 700
# Kafka's names for levels that Python calls otherwise.
_LEVELS = {"TRACE": "DEBUG", "WARN": "WARNING", "FATAL": "CRITICAL"}

_HTTP_PORT = "8080"
_SWEEP_SECONDS = 2
_LOGIN = (
    " -X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=SCRAM-SHA-256"
    " -X sasl.username=… -X sasl.password=…"
)

_DESCRIPTION = """\
Run a broker until SIGTERM or Ctrl-C.

A setting is taken from the strongest place that has it: what was altered at run time, then the flags here,
then environment variables (log.retention.ms is KBROKER_LOG_RETENTION_MS), then the file, then the default.
All settings: kbroker docs configuration."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "serve",
        help="run the broker",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=_port, help="port to listen on (default 9092; 0 picks a free one)")
    parser.add_argument(
        "--http-port",
        metavar="PORT",
        help="port of the HTTP API (default 8080, if it is free; 0 picks a free one, off opens none)",
    )
    parser.add_argument(
        "--grpc-port",
        metavar="PORT",
        help="port of the gRPC API, which needs kbroker[grpc] (default: none; 0 picks a free one)",
    )
    parser.add_argument(
        "--metrics-port",
        metavar="PORT",
        help="port for metrics and health alone (default: none, HTTP has them; 0 picks a free one)",
    )
    parser.add_argument("--data", metavar="DIR", help="data directory (default ./data)")
    parser.add_argument("--config", metavar="FILE", help="settings: YAML, or a Kafka server.properties")
    parser.add_argument(
        "--advertise", metavar="HOST:PORT", help="address that clients are told to connect to"
    )
    parser.add_argument("--fsync", action="store_true", help="acknowledge only what is forced to disk")
    parser.add_argument("--in-memory", action="store_true", help="keep everything in memory, no files")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="any setting, any number of times"
    )
    parser.add_argument(
        "--user",
        metavar="NAME:PASSWORD",
        action="append",
        default=[],
        help="a user; clients have to log in then, by SCRAM or PLAIN; any number of times "
        "(others see command lines: rather KBROKER_USERS or kbroker.users.file)",
    )
    parser.add_argument(
        "--log-level",
        choices=("trace", "debug", "info", "warn", "error", "fatal"),
        help="how much is logged, to standard error (default info)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="how it is logged (default text)"
    )
    parser.add_argument(
        "--control-port",
        type=_port,
        metavar="PORT",
        help="let tests inject faults here (0 picks a free port)",
    )
    parser.add_argument(
        "--with-parent",
        action="store_true",
        help="stop when standard input closes, as it does when the parent dies",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from kbroker.catalog.errors import CatalogError
    from kbroker.config.errors import SettingError
    from kbroker.config.settings import Settings
    from kbroker.data_directory import DataDirectoryError
    from kbroker.server import StartError

    try:
        settings = Settings.load(
            arguments.config,
            flags=_flags(arguments),
            environ=os.environ,
            host=arguments.host,
            port=arguments.port,
            advertise=arguments.advertise,
        )
        limit = _start_logging(settings["kbroker.log.level"], arguments.log_format)
        if settings.warning:
            logging.getLogger("kbroker").warning("%s", settings.warning)
        return _serve(settings, arguments, limit)
    except (SettingError, StartError, DataDirectoryError, CatalogError) as error:
        print(f"kbroker: {error}", file=sys.stderr)  # noqa: T201
        return 1


def _serve(settings: Settings, arguments: argparse.Namespace, limit: LogLimit) -> int:
    import uvloop

    from kbroker.server import StartError, serve

    _let_requests_gather()
    _take_all_descriptors()

    async def ready(server: Server) -> None:
        control = None
        try:
            await server.offer_http(_HTTP_PORT)
        except StartError as error:
            logging.getLogger("kbroker").warning("there is no HTTP API: %s", error)
        if arguments.control_port is not None:
            control = await server.open_control_port(arguments.control_port)
        _tell_left_out(limit)
        _spare_the_collector()
        _announce(server, settings, control)

    uvloop.run(serve(settings, ready, with_parent=arguments.with_parent))
    return 0


def _let_requests_gather() -> None:
    """Do not take the processor from whoever has it when a request comes in (adr/0015)."""
    if sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_OTHER:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _take_all_descriptors() -> None:
    """The usual limit is for programs that use select(), which this one does not."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _spare_the_collector() -> None:
    """Requests that wait are many objects that go without being collected. Looking for garbage among them,
    and among all that was loaded, held everybody up for 10 ms and more.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)


def _announce(server: Server, settings: Settings, control: int | None) -> None:
    """Where it listens and how to try it: one line for programs, a banner for people."""
    _, host, port = server.addresses[0]
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    others = "".join(f", {name} on {host}:{port}" for name, host, port in server.addresses[1:])
    kept = "memory" if settings["kbroker.in.memory"] else str(settings.data_directory)
    if server.http_address is not None:
        others += f", HTTP on {_url(settings.http_listener(_HTTP_PORT), server.http_address)}"
    if server.grpc_address is not None:
        host, port = server.grpc_address
        others += f", gRPC on [{host}]:{port}" if ":" in host else f", gRPC on {host}:{port}"
    if server.metrics_address is not None:
        others += f", metrics on {_url(settings.metrics_listener(), server.metrics_address)}"
    controlled = f", control port {control}" if control is not None else ""
    open_to = _open_to_others(settings, server)
    if open_to:
        logging.getLogger("kbroker").warning(
            "anybody who reaches %s may do everything: it asks for neither certificates nor logins", open_to
        )
    listener = settings.listeners[0]
    options = " --command-config FILE" if listener.uses_tls else _LOGIN if listener.uses_sasl else ""
    if sys.stdout.isatty():
        from kbroker.cli.banner import banner

        text = banner(where, kept, others + controlled, options, color="NO_COLOR" not in os.environ)
    else:
        from kbroker.cli.program import program

        text = (
            f"kbroker {__version__} listening on {where}{others}, data in {kept}{controlled}. "
            f"Try it: {program()} topic list -b {where}{options}"
        )
    print(text, flush=True)  # noqa: T201


def _url(listener: Listener | None, address: tuple[str, int]) -> str:
    host, port = address
    scheme = "https" if listener is not None and listener.uses_tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _open_to_others(settings: Settings, server: Server) -> str:
    """The listeners that other machines can reach and that know nobody, in words."""
    from kbroker.config.listeners import METRICS, is_loopback

    open_ones = {
        each.name
        for each in settings.all_listeners
        if each.protocol != METRICS and not settings.asks_who_comes(each)
    }
    return ", ".join(
        f"{name} on {host}:{port}"
        for name, host, port in server.all_addresses
        if name in open_ones and not is_loopback(host)
    )


def _start_logging(level: str, style: str) -> LogLimit:
    """Neither format ever holds keys or values of records: nothing in the broker logs them."""
    from kbroker.observability.log_limit import LogLimit
    from kbroker.observability.log_lines import TextFormatter

    handler = logging.StreamHandler(sys.stderr)
    if style == "json":
        from kbroker.cli.json_log import JsonFormatter

        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(TextFormatter())

    def write(record: logging.LogRecord) -> None:
        """As the handler would, past its filter."""
        handler.acquire()
        try:
            handler.emit(record)
        finally:
            handler.release()

    limit = LogLimit(time.monotonic, write)
    handler.addFilter(limit)
    logging.basicConfig(level=_LEVELS.get(level, level), handlers=[handler])
    return limit


def _tell_left_out(limit: LogLimit) -> None:
    """Every few seconds, of what the log does not say any more."""
    import asyncio

    limit.sweep()
    asyncio.get_running_loop().call_later(_SWEEP_SECONDS, _tell_left_out, limit)


def _flags(arguments: argparse.Namespace) -> dict[str, str]:
    from kbroker.config.errors import SettingError

    flags: dict[str, str] = {}
    for entry in arguments.set:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise SettingError(f"--set takes NAME=VALUE, not {entry!r}")
        flags[name.strip()] = value
    if arguments.user:
        if any("," in user for user in arguments.user):
            raise SettingError("--user: a password with a comma in it has to stand in kbroker.users.file")
        flags["kbroker.users"] = ",".join(arguments.user)
    if arguments.data is not None:
        flags["log.dirs"] = arguments.data
    if arguments.http_port is not None:
        flags["kbroker.http.port"] = arguments.http_port
    if arguments.metrics_port is not None:
        flags["kbroker.metrics.port"] = arguments.metrics_port
    if arguments.grpc_port is not None:
        flags["kbroker.grpc.port"] = arguments.grpc_port
    if arguments.fsync:
        flags["kbroker.fsync"] = "true"
    if arguments.in_memory:
        flags["kbroker.in.memory"] = "true"
    if arguments.log_level is not None:
        flags["kbroker.log.level"] = arguments.log_level.upper()
    return flags


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port (0 to 65535)")
    return port
