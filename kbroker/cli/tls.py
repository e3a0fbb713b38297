"""`kbroker tls init`: a private authority, and certificates of a broker and of clients, for development."""

from __future__ import annotations

import argparse
import datetime
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.cli.output import say
from kbroker.cli.program import program
from kbroker.exit_codes import OK, USAGE, CommandFailed

if TYPE_CHECKING:
    from kbroker.security.tls.authority import Issued

_HOSTS = ("localhost", "127.0.0.1", "::1")
_PORT = 9093
_SECRET, _PUBLIC = 0o600, 0o644

_DESCRIPTION = """\
Make a private certificate authority, and certificates of a broker and of clients that it has signed. They
come with settings: 'kbroker serve --config DIR/server.properties' then speaks TLS, and lets in who shows a
certificate of this authority. A client's name is its principal: User:NAME.

For development: whoever can read DIR/ca.key can be anybody."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("tls", help="make certificates for development")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    init = actions.add_parser(
        "init",
        help="a private authority, and certificates of a broker and of clients",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    init.add_argument("directory", nargs="?", default="tls", metavar="DIR", help="where to (default ./tls)")
    init.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name or address that clients reach the broker by, any number of times; besides "
        + ", ".join(_HOSTS),
    )
    init.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="NAME",
        help="a client to make a certificate for, any number of times (default client)",
    )
    init.add_argument("--port", type=int, default=_PORT, help=f"port of the broker (default {_PORT})")
    init.add_argument(
        "--days", type=int, default=825, help="how long the certificates are valid (default 825)"
    )
    init.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    clients = arguments.client or ["client"]
    for name in clients:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name in ("ca", "broker", "server"):
            raise CommandFailed(
                f"--client {name}: take another name, of letters, digits, '.', '_' and '-'", USAGE
            )
    directory = Path(arguments.directory).absolute()
    hosts = [*dict.fromkeys([*arguments.host, *_HOSTS])]
    files = _files(directory, hosts, clients, arguments.days, arguments.port)
    _write(directory, files)
    say(_told(directory, hosts, clients[0], arguments.port))
    return OK


def _files(
    directory: Path, hosts: Sequence[str], clients: Sequence[str], days: int, port: int
) -> dict[str, tuple[str, int]]:
    """Names, contents and modes."""
    try:
        from kbroker.security.tls.authority import Authority
    except ImportError:
        raise CommandFailed(
            "'kbroker tls' needs the package cryptography: pip install 'kbroker[tls]'"
        ) from None

    authority = Authority(datetime.datetime.now(datetime.UTC), days)
    files = {
        "ca.pem": (authority.own.certificate, _PUBLIC),
        "ca.key": (authority.own.key, _SECRET),
        "server.properties": (_server_properties(directory, hosts, port), _PUBLIC),
        **_stores("broker", authority.issue_broker(hosts)),
    }
    for name in clients:
        files |= _stores(name, authority.issue_client(name))
        files[f"{name}.properties"] = (_client_properties(directory, name), _PUBLIC)
    return files


def _stores(name: str, issued: Issued) -> dict[str, tuple[str, int]]:
    return {
        f"{name}.pem": (issued.key + issued.certificate, _SECRET),  # for Java, and for the broker
        f"{name}.key": (issued.key, _SECRET),
        f"{name}.crt": (issued.certificate, _PUBLIC),
    }


def _write(directory: Path, files: dict[str, tuple[str, int]]) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = [name for name in files if (directory / name).exists()]
    if there:
        raise CommandFailed(
            f"{directory / there[0]} is there already; nothing was written. Name another directory"
        )
    for name, (text, mode) in files.items():
        descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, mode)
            file.write(text)


def _server_properties(directory: Path, hosts: Sequence[str], port: int) -> str:
    if hosts[0] in _HOSTS:
        where = {"listeners": f"SSL://127.0.0.1:{port}"}
    else:
        advertised = f"SSL://{_bracketed(hosts[0])}:{port}"
        where = {"listeners": f"SSL://:{port}", "advertised.listeners": advertised}
    return _properties(
        {
            **where,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/,DEFAULT",
        }
    )


def _client_properties(directory: Path, name: str) -> str:
    return _properties(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / f"{name}.pem"),
        }
    )


def _properties(settings: dict[str, str]) -> str:
    return "".join(f"{name}={value.replace(chr(92), chr(92) * 2)}\n" for name, value in settings.items())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _told(directory: Path, hosts: Sequence[str], client: str, port: int) -> str:
    address = f"{_bracketed(hosts[0])}:{port}"
    java = "".join(f"    {line}\n" for line in _client_properties(directory, client).splitlines())
    return f"""\
{directory} has an authority, a broker's certificate for {", ".join(hosts)}, and {client}'s.

Start the broker:
    {program()} serve --config {directory / "server.properties"}
Try it:
    {program()} topic list -b {address} --command-config {directory / f"{client}.properties"}

Java (also in {client}.properties, for --command-config of Kafka's tools):
    bootstrap.servers={address}
{java}
librdkafka (confluent-kafka, kcat -X …):
    bootstrap.servers={address}
    security.protocol=ssl
    ssl.ca.location={directory / "ca.pem"}
    ssl.certificate.location={directory / f"{client}.crt"}
    ssl.key.location={directory / f"{client}.key"}

kafka-python:
    bootstrap_servers="{address}", security_protocol="SSL",
    ssl_cafile="{directory / "ca.pem"}",
    ssl_certfile="{directory / f"{client}.crt"}",
    ssl_keyfile="{directory / f"{client}.key"}"
"""
