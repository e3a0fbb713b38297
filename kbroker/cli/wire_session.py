"""Connections of a command on kbroker's own codec, with TLS and a login as its options ask.

For what kafka-python cannot ask. Its SASL mechanisms are used: they are free of I/O.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from kbroker.cli import connection
from kbroker.cli.errors import refused
from kbroker.cli.wire_client import WireClient


def coordinators(
    arguments: argparse.Namespace, groups: Sequence[str]
) -> Iterator[tuple[WireClient, list[str]]]:
    """Each coordinator of the groups, connected while it is the loop's, with those that it has."""
    if not groups:
        return
    from kbroker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

    with _bootstrap(arguments) as wire:
        asked = FindCoordinatorRequest(coordinator_keys=list(groups))
        found = wire.ask(asked, 4, FindCoordinatorResponse).coordinators
    by_address: dict[tuple[str, int], list[str]] = {}
    for each in found:
        if each.error_code:
            raise refused(f"group {each.key}", each.error_code, each.error_message)
        by_address.setdefault((each.host, each.port), []).append(each.key)
    for address, names in by_address.items():
        with connected(arguments, address) as wire:
            yield wire, names


def _bootstrap(arguments: argparse.Namespace) -> WireClient:
    """The first of the named brokers that can be reached."""
    *others, last = connection.addresses(arguments.bootstrap)
    for address in others:
        try:
            return connected(arguments, address)
        except OSError:
            continue
    return connected(arguments, last)


def connected(arguments: argparse.Namespace, address: tuple[str, int]) -> WireClient:
    """Raises CommandFailed if the login is refused, and OSError."""
    configs = connection.client_configs(arguments)
    wire = WireClient(address, arguments.timeout, configs.get("ssl_context"))
    try:
        if str(configs.get("security_protocol", "")).startswith("SASL_"):
            _log_in(wire, address[0], configs)
    except BaseException:
        wire.close()
        raise
    return wire


def _log_in(wire: WireClient, host: str, configs: dict[str, Any]) -> None:
    from kafka.net.sasl import get_sasl_mechanism

    from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
    from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

    name = configs["sasl_mechanism"]
    answer = wire.ask(SaslHandshakeRequest(mechanism=name), 1, SaslHandshakeResponse)
    if answer.error_code:
        raise refused(f"login by {name}", answer.error_code)
    mechanism: Any = get_sasl_mechanism(name)(host=host, **configs)
    while not mechanism.is_done():
        token = mechanism.auth_bytes()
        told = wire.ask(SaslAuthenticateRequest(auth_bytes=token), 1, SaslAuthenticateResponse)
        if told.error_code:
            raise refused(f"login by {name}", told.error_code, told.error_message)
        mechanism.receive(bytes(told.auth_bytes))
