"""What a broker tells clients to connect to, and whether that works from here."""

from __future__ import annotations

import argparse
import socket
import time
from typing import Any

from kbroker.cli import connection
from kbroker.exit_codes import UNREACHABLE, CommandFailed

ADVICE = "start the broker with --advertise HOST:PORT, an address that clients can reach"
_TLS_WANTED = (
    "speaks TLS: add -X security.protocol=SSL and the authority to trust, -X ssl.ca.location=FILE, or "
    "--command-config FILE"
)
_CERTIFICATE_WANTED = (
    "asks for a certificate: add -X ssl.certificate.location=FILE and -X ssl.key.location=FILE, or "
    "ssl.keystore.location to --command-config"
)
_PATIENCE = 2  # seconds, for a look after something else has taken its time


def brokers(address: tuple[str, int], timeout: float, tls: Any = None) -> tuple[list[Any], float]:
    """The brokers that the one at an address tells of, and how many ms its answer takes."""
    from kbroker.cli.wire_client import WireClient
    from kbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse

    with WireClient(address, timeout, tls) as client:
        client.ask(MetadataRequest(topics=[]), 4, MetadataResponse)  # makes our codec, which takes its time
        started = time.monotonic()
        told: list[Any] = client.ask(MetadataRequest(topics=[]), 4, MetadataResponse).brokers
    return told, (time.monotonic() - started) * 1000


def speaks_tls(address: tuple[str, int], timeout: float) -> bool:
    """Whether anybody who does not look at certificates could shake hands there."""
    try:
        with (
            socket.create_connection(address, timeout=timeout) as plain,
            anybody().wrap_socket(plain, server_hostname=address[0]),
        ):
            return True
    except OSError:
        return False


def anybody() -> Any:
    """The TLS context of a client that trusts everybody and shows nothing: to look, not to send."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def obstacle(broker: Any, timeout: float) -> str | None:
    """Why clients cannot connect to what they are told."""
    try:
        with socket.create_connection((broker.host, broker.port), timeout=timeout):
            return None
    except socket.gaierror:
        return "which is no known host name from here"
    except OSError as error:
        return f"which cannot be reached from here ({error})"


def diagnosis(arguments: argparse.Namespace) -> CommandFailed | None:
    """What is wrong where a client found no way to a broker although somebody listens."""
    for address in connection.addresses(arguments.bootstrap):
        found = _diagnosis_of(address, arguments)
        if found is not None:
            return CommandFailed(f"{address[0]}:{address[1]} {found}", UNREACHABLE)
    return None


def _diagnosis_of(address: tuple[str, int], arguments: argparse.Namespace) -> str | None:
    tls = connection.tls_context(arguments)
    try:
        told, _ = brokers(address, _PATIENCE)
    except OSError:
        if tls is None:
            return _TLS_WANTED if speaks_tls(address, _PATIENCE) else _login_refused(address, arguments)
    else:
        if not connection.is_plaintext(arguments):
            protocol = connection.client_configs(arguments)["security_protocol"]
            return (
                f"answers without TLS and SASL, not as security.protocol={protocol} asks: leave out that -X, "
                "or name the port of another listener"
            )
    if tls is not None:
        try:
            told, _ = brokers(address, _PATIENCE, tls)
        except OSError as error:
            wanted = "CERTIFICATE_REQUIRED" in str(error)
            return _CERTIFICATE_WANTED if wanted else _login_refused(address, arguments)
    for broker in told:
        if (reason := obstacle(broker, _PATIENCE)) is not None:
            return (
                f"answers, but tells clients to connect to {broker.host}:{broker.port}, {reason}: {ADVICE}. "
                "'kbroker doctor' checks it"
            )
    return None


def _login_refused(address: tuple[str, int], arguments: argparse.Namespace) -> str | None:
    """Why a login fails, which kafka-python does not tell."""
    if not connection.logs_in(arguments):
        return None
    from kbroker.cli.wire_session import connected

    try:
        connected(arguments, address).close()
    except CommandFailed as error:
        return f"refuses the {error}"
    except OSError:
        pass
    return None
