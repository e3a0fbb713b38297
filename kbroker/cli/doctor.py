"""`kbroker doctor`: what is wrong with this setup?

Each check is a function that yields findings; a finding says what was looked at, how it is, and if it is not
well, what to do.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kbroker.cli import advertised, connection, ping
from kbroker.cli.output import add_output_options, print_json, print_table, size_text
from kbroker.exit_codes import FOUND, OK

_FEW_FILES = 4096
_LITTLE_SPACE = 1 << 30
_VERY_LITTLE_SPACE = 100 << 20
_AHEAD_SECONDS = 5
_EARLIEST = 1_750_000_000  # a clock before this year is wrong
_NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs")


class Finding(NamedTuple):
    check: str
    result: str  # ok, warning, bad
    text: str


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="what is wrong with my setup?",
        description="Look at the broker's address, what it tells clients, the disk, the clock and the limits "
        "of this machine. Exit code 4: something is bad.",
    )
    parser.add_argument(
        "--data", default="./data", metavar="DIR", help="the broker's data directory (default ./data)"
    )
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    findings = [finding for check in _CHECKS for finding in check(arguments)]
    if arguments.json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_table(("CHECK", "RESULT", "WHAT"), findings)
    return FOUND if any(finding.result == "bad" for finding in findings) else OK


def _python(_: argparse.Namespace) -> Iterator[Finding]:
    from kbroker import __version__

    yield Finding("kbroker", "ok", f"{__version__} on Python {sys.version.split()[0]}, {sys.platform}")


def _broker(arguments: argparse.Namespace) -> Iterator[Finding]:
    tls = connection.tls_context(arguments)
    for host, port in connection.addresses(arguments.bootstrap):
        where = f"{host}:{port}"
        try:
            resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
        except OSError:
            yield Finding(
                "address", "bad", f"{host} is not a known host name: correct it, or use its IP address"
            )
            continue
        try:
            if connection.logs_in(arguments):  # what it tells after that is not looked at
                brokers: list[Any] = []
                took = ping.took_ms((host, port), arguments.timeout, tls)
            else:
                brokers, took = advertised.brokers((host, port), arguments.timeout, tls)
        except ConnectionRefusedError:
            yield Finding(
                "broker", "bad", f"nobody listens on {where} ({resolved}): 'kbroker serve' starts one"
            )
        except TimeoutError:
            yield Finding("broker", "bad", f"{where} ({resolved}) does not answer: is a firewall in between?")
        except OSError as error:
            yield Finding("broker", "bad", f"{where} is taken by something that is not a Kafka: {error}")
        else:
            yield Finding("broker", "ok" if took < 500 else "warning", f"{where} answers in {took:.0f} ms")
            yield from _authentication((host, port), str(resolved), arguments.timeout)
            for broker in brokers:
                yield from _advertised(broker, where, arguments.timeout)


def _authentication(address: tuple[str, int], resolved: str, timeout: float) -> Iterator[Finding]:
    """Whether anybody who reaches the broker is served, and who that may be."""
    where = f"{address[0]}:{address[1]}"
    for tls in (None, advertised.anybody()):
        try:
            told, _ = advertised.brokers(address, timeout, tls)
        except OSError:
            continue
        reached = [f"{each.host}:{each.port}" for each in told if not _is_loopback(each.host)]
        reached += [] if _is_loopback(resolved) else [where]
        reached += [f"port {address[1]} of every interface"] if _listens_beyond_loopback(address[1]) else []
        encrypted = "" if tls is None else " (TLS without ssl.client.auth=required)"
        if reached:
            yield Finding(
                "authentication",
                "warning",
                f"{where} serves anybody without a login{encrypted}, and can be reached at {reached[0]}: "
                "let it listen on 127.0.0.1 only, or ask for certificates or logins (kbroker docs security)",
            )
        else:
            yield Finding("authentication", "ok", f"{where} serves anybody, on this machine only{encrypted}")
        return


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _listens_beyond_loopback(port: int) -> bool:
    """Whether a program on this machine has the port on more than a loopback address."""
    loopback = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                rows = [line.split() for line in lines][1:]
        except OSError:
            continue
        for row in rows:
            local, _, number = row[1].rpartition(":")
            if row[3] == "0A" and int(number, 16) == port and local not in loopback:
                return local[-2:] != "7F"
    return False


def _advertised(broker: Any, asked: str, timeout: float) -> Iterator[Finding]:
    """Clients connect to what the broker tells them, not to what they were given."""
    told = f"{broker.host}:{broker.port}"
    name = f"broker {broker.node_id} tells"
    if (reason := advertised.obstacle(broker, timeout)) is not None:
        yield Finding(name, "bad", f"{told}, {reason}: {advertised.ADVICE}")
        return
    loopback = _is_loopback(broker.host)
    remote = not asked.startswith(("127.", "localhost", "[::1]"))
    if loopback and remote:
        yield Finding(name, "warning", f"{told}, which other machines cannot reach: {advertised.ADVICE}")
    else:
        yield Finding(name, "ok", f"clients to connect to {told}, which works from here")


def _disk(arguments: argparse.Namespace) -> Iterator[Finding]:
    from kbroker.storage.files import file_system_type

    path = os.path.abspath(arguments.data)
    existing = path
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    if not os.access(existing, os.W_OK | os.X_OK):
        yield Finding(
            "data", "bad", f"{existing} cannot be written: change its owner, or choose another --data"
        )
        return
    volume = os.statvfs(existing)
    free, total = volume.f_bavail * volume.f_frsize, volume.f_blocks * volume.f_frsize
    text = f"{size_text(free)} of {size_text(total)} free where {path} is"
    if free < _VERY_LITTLE_SPACE:
        yield Finding("disk", "bad", f"{text}: make room, or lower retention.bytes")
    elif free < _LITTLE_SPACE:
        yield Finding("disk", "warning", f"{text}: set retention.bytes before it is full")
    else:
        yield Finding("disk", "ok", text)
    if volume.f_files and volume.f_favail < 1000:
        yield Finding("disk", "bad", f"only {volume.f_favail} inodes are left where {path} is")
    kind = file_system_type(existing)
    if kind in _NETWORK_FILE_SYSTEMS:
        yield Finding(
            "data", "warning", f"{path} is on {kind}: locks and fsync may not hold what they promise"
        )
    elif kind in ("tmpfs", "ramfs"):
        yield Finding("data", "warning", f"{path} is on {kind}, which a restart of the machine empties")


def _clock(arguments: argparse.Namespace) -> Iterator[Finding]:
    now = time.time()
    if now < _EARLIEST:
        yield Finding("clock", "bad", f"it says {time.ctime(now)}: set it, retention goes by timestamps")
        return
    newest = 0.0
    for folder, _, names in os.walk(arguments.data):
        for name in names:
            if name.endswith(".log"):
                newest = max(newest, os.stat(os.path.join(folder, name)).st_mtime)
    if newest > now + _AHEAD_SECONDS:
        text = f"the newest segment was written {newest - now:.0f} s in the future: the clock was set back"
        yield Finding("clock", "bad", text)
    else:
        yield Finding("clock", "ok", time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(now)))


def _limits(_: argparse.Namespace) -> Iterator[Finding]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _FEW_FILES:
        text = (
            f"{soft} open files at most: every connection and every partition in use takes one. "
            f"Raise it with 'ulimit -n {max(hard, _FEW_FILES)}', or LimitNOFILE= in a systemd unit"
        )
        yield Finding("open files", "warning", text)
    else:
        yield Finding("open files", "ok", f"{'any number of' if soft < 0 else soft} at most")


_CHECKS: tuple[Callable[[argparse.Namespace], Iterator[Finding]], ...] = (
    _python,
    _broker,
    _disk,
    _clock,
    _limits,
)
