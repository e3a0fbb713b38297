"""`kbroker tls init`: a private authority, and certificates of a broker and of clients, for development."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import secrets
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

With --admin clients log in by name and password (SCRAM) instead, and may do what ACLs allow; the
administrator NAME, whose password is in DIR/NAME.properties, may do everything.

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
    init.add_argument(
        "--admin",
        metavar="NAME",
        help="let clients log in with passwords, not certificates, and make this user, who may do everything",
    )
    init.add_argument("--port", type=int, default=_PORT, help=f"port of the broker (default {_PORT})")
    init.add_argument(
        "--days", type=int, default=825, help="how long the certificates are valid (default 825)"
    )
    init.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    admin: str | None = arguments.admin
    clients = arguments.client or ([] if admin else ["client"])
    for name in filter(None, [*clients, admin]):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name in ("ca", "broker", "server"):
            raise CommandFailed(
                f"{name} is no name for a client: take another, of letters, digits, '.', '_' and '-'", USAGE
            )
    directory = Path(arguments.directory).absolute()
    hosts = [*dict.fromkeys([*arguments.host, *_HOSTS])]
    files = _files(directory, hosts, clients, arguments.days, arguments.port)
    if admin is not None:
        files |= _with_logins(directory, hosts, arguments.port, admin)
    _write(directory, files)
    say(_told(directory, hosts, admin or clients[0], arguments.port, logs_in=admin is not None))
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


def _with_logins(directory: Path, hosts: Sequence[str], port: int, admin: str) -> dict[str, tuple[str, int]]:
    """The files that differ, and those that are more, where clients log in."""
    from kbroker.security.scram_credentials import HASHES, of_password, random_salt

    password = secrets.token_urlsafe(18)
    users = [f"{admin}:{of_password(kind, password, random_salt()).to_text(kind)}\n" for kind in HASHES]
    server = _listeners("SASL_SSL", hosts, port) | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "sasl.enabled.mechanisms": ",".join(HASHES),
        "kbroker.users.file": str(directory / "users"),
        "authorizer.class.name": "kbroker",
        "super.users": f"User:{admin}",
    }
    return {
        "server.properties": (_properties(server), _PUBLIC),
        "users": ("".join(users), _SECRET),
        f"{admin}.properties": (_login_properties(directory, admin, password), _SECRET),
    }


def _login_properties(directory: Path, name: str, password: str) -> str:
    return _properties(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{name}" password="{password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
        }
    )


def _server_properties(directory: Path, hosts: Sequence[str], port: int) -> str:
    return _properties(
        _listeners("SSL", hosts, port)
        | {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/,DEFAULT",
        }
    )


def _listeners(protocol: str, hosts: Sequence[str], port: int) -> dict[str, str]:
    if hosts[0] in _HOSTS:
        return {"listeners": f"{protocol}://127.0.0.1:{port}"}
    advertised = f"{protocol}://{_bracketed(hosts[0])}:{port}"
    return {"listeners": f"{protocol}://:{port}", "advertised.listeners": advertised}


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


def _told(directory: Path, hosts: Sequence[str], client: str, port: int, *, logs_in: bool) -> str:
    address = f"{_bracketed(hosts[0])}:{port}"
    file = directory / f"{client}.properties"
    what = f"{client}'s password" if logs_in else f"{client}'s certificate"
    return f"""\
{directory} has an authority, a broker's certificate for {", ".join(hosts)}, and {what}.

Start the broker:
    {program()} serve --config {directory / "server.properties"}
Try it:
    {program()} topic list -b {address} --command-config {file}
{_told_logins(directory, address, client) if logs_in else _told_certificates(directory, address, client)}"""


def _told_logins(directory: Path, address: str, admin: str) -> str:
    return f"""\
Make a user, and let them write and read:
    {program()} user create alice -b {address} --command-config {directory / f"{admin}.properties"}
    {program()} acl add --allow-principal User:alice --producer --consumer --topic orders --group '*' \\
        -b {address} --command-config {directory / f"{admin}.properties"}

Java: as in {admin}.properties, with the user's name and password.

librdkafka (confluent-kafka, kcat -X …):
    bootstrap.servers={address}
    security.protocol=sasl_ssl
    sasl.mechanism=SCRAM-SHA-512
    sasl.username=alice
    sasl.password=…
    ssl.ca.location={directory / "ca.pem"}

kafka-python:
    bootstrap_servers="{address}", security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512",
    sasl_plain_username="alice", sasl_plain_password="…",
    ssl_cafile="{directory / "ca.pem"}"
"""


def _told_certificates(directory: Path, address: str, client: str) -> str:
    java = "".join(f"    {line}\n" for line in _client_properties(directory, client).splitlines())
    return f"""
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
