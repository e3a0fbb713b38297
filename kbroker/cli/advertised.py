"""What a broker tells clients to connect to, and whether that works from here. Plaintext only."""

from __future__ import annotations

import argparse
import socket
import time
from typing import Any

from kbroker.cli import connection
from kbroker.exit_codes import UNREACHABLE, CommandFailed

ADVICE = "start the broker with --advertise HOST:PORT, an address that clients can reach"
_PATIENCE = 2  # seconds, for a look after something else has taken its time


def brokers(address: tuple[str, int], timeout: float) -> tuple[list[Any], float]:
    """The brokers that the one at an address tells of, and how many ms its answer takes."""
    from kbroker.cli.wire_client import WireClient
    from kbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse

    with WireClient(address, timeout) as client:
        client.ask(MetadataRequest(topics=[]), 4, MetadataResponse)  # makes our codec, which takes its time
        started = time.monotonic()
        told: list[Any] = client.ask(MetadataRequest(topics=[]), 4, MetadataResponse).brokers
    return told, (time.monotonic() - started) * 1000


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
    for host, port in connection.addresses(arguments.bootstrap):
        try:
            told, _ = brokers((host, port), _PATIENCE)
        except OSError:
            continue
        where = f"{host}:{port}"
        if not connection.is_plaintext(arguments):
            protocol = connection.client_configs(arguments)["security_protocol"]
            return CommandFailed(
                f"{where} answers without TLS and SASL, not as security.protocol={protocol} asks: leave out "
                "that -X, or name the port of another listener",
                UNREACHABLE,
            )
        for broker in told:
            if (reason := obstacle(broker, _PATIENCE)) is not None:
                return CommandFailed(
                    f"{where} answers, but tells clients to connect to {broker.host}:{broker.port}, "
                    f"{reason}: {ADVICE}. 'kbroker doctor' checks it",
                    UNREACHABLE,
                )
    return None
