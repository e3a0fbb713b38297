"""Handshake and login, message by message, in every order that a client might try."""

from __future__ import annotations

from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.harness import sasl
from compat.harness.sasl import ADMIN, ALICE, CLOSED, Client
from compat.harness.side import Side

VERSIONS = ("ApiVersions", 3, {"ClientSoftwareName": "compat", "ClientSoftwareVersion": "1"})
BAD_VERSIONS = ("ApiVersions", 3, {"ClientSoftwareName": "", "ClientSoftwareVersion": "1"})
FUTURE_VERSIONS = ("ApiVersions", 0, {})
METADATA = ("Metadata", 12, {"Topics": None})
GROUPS = ("ListGroups", 4, {})
CLUSTER = ("DescribeCluster", 0, {})
RIGHT = sasl.plain(*ADMIN)


def handshake(mechanism: str, version: int = 1) -> tuple[str, int, dict[str, Any]]:
    return "SaslHandshake", version, {"Mechanism": mechanism}


def message(content: bytes, version: int = 2) -> tuple[str, int, dict[str, Any]]:
    return "SaslAuthenticate", version, {"AuthBytes": content}


ORDERS = {
    "a request before everything": [METADATA],
    "a request after the versions": [VERSIONS, METADATA],
    "versions twice": [VERSIONS, VERSIONS],
    "versions of a nameless client": [BAD_VERSIONS, VERSIONS, VERSIONS],
    "old versions": [FUTURE_VERSIONS, handshake("PLAIN"), message(RIGHT), CLUSTER],
    "a message without a handshake": [message(RIGHT)],
    "an unknown mechanism": [handshake("NOPE"), handshake("PLAIN")],
    "an unknown mechanism, version 0": [handshake("NOPE", 0)],
    "a request within the exchange": [handshake("PLAIN"), METADATA, CLUSTER],
    "another request within the exchange": [handshake("PLAIN"), GROUPS],
    "versions within the exchange": [handshake("PLAIN"), VERSIONS],
    "a handshake within the exchange": [handshake("PLAIN"), handshake("PLAIN")],
    "a handshake after the login": [handshake("PLAIN"), message(RIGHT), handshake("PLAIN"), CLUSTER],
    "a message after the login": [handshake("PLAIN"), message(RIGHT), message(RIGHT), CLUSTER],
    "versions after the login": [handshake("PLAIN"), message(RIGHT), VERSIONS, CLUSTER],
    "version 0": [handshake("PLAIN"), message(RIGHT, 0), CLUSTER],
    "version 1": [handshake("PLAIN"), message(RIGHT, 1), CLUSTER],
    "a wrong password, version 0": [handshake("PLAIN"), message(sasl.plain("admin", "x"), 0)],
}


def tell(client: Client, steps: list[tuple[str, int, dict[str, Any]]]) -> list[Any]:
    """What came back, step by step, up to the end of the connection."""
    seen: list[Any] = []
    for name, version, values in steps:
        if name == "SaslHandshake":
            answer = client.handshake(values["Mechanism"], version)
        else:
            answer = client.ask(name, version, values)
        if isinstance(answer, dict):
            kept = ("ErrorCode", "Mechanisms", "AuthBytes", "SessionLifetimeMs")
            texts = ("ErrorMessage",) if name == "SaslAuthenticate" else ()
            answer = {key: value for key, value in answer.items() if key in kept + texts}
        seen.append([name, answer])
        if answer == CLOSED:
            break
    client.close()
    return seen


@pytest.mark.parametrize("steps", ORDERS.values(), ids=ORDERS.keys())
def test_what_may_follow_what(pair: Pair, steps: list[tuple[str, int, dict[str, Any]]]) -> None:
    pair.same(lambda side: tell(Client(side.server.bootstrap), steps))


PLAIN = {
    "a wrong password": sasl.plain("admin", "wrong"),
    "an unknown user": sasl.plain("nobody", "x"),
    "two parts": b"admin\0x",
    "four parts": b"\0a\0b\0c",
    "no name": b"\0\0x",
    "no password": b"\0admin\0",
    "for somebody else": sasl.plain(*ADMIN, "alice"),
    "for oneself": sasl.plain(*ADMIN, "admin"),
    "nothing": b"",
    "no text": b"\xff\xfe\0admin\0x",
}


@pytest.mark.parametrize("content", PLAIN.values(), ids=PLAIN.keys())
def test_plain(pair: Pair, content: bytes) -> None:
    pair.same(
        lambda side: tell(Client(side.server.bootstrap), [handshake("PLAIN"), message(content), CLUSTER])
    )


def by_scram(mechanism: str, *arguments: str) -> Any:
    def scenario(side: Side) -> Any:
        client = Client(side.server.bootstrap)
        answer = client.scram(mechanism, *arguments)
        inside = client.is_in()
        client.close()
        return [answer, inside]

    return scenario


SCRAM = {
    "right": [*ALICE],
    "a wrong password": ["alice", "wrong"],
    "an unknown user": ["nobody", "x"],
    "an extension": [*ALICE, ",colour=blue"],
    "for oneself": [*ALICE, "", "n,a=alice,"],
    "for somebody else": [*ALICE, "", "n,a=admin,"],
    "channel binding not known to the server": [*ALICE, "", "y,,"],
    "channel binding": [*ALICE, "", "p=tls-unique,,"],
    "a nonce with something before it": [*ALICE, "", "n,,", "nonce"],
    "an unknown token": ["nope", "x", ",tokenauth=true"],
}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("arguments", SCRAM.values(), ids=SCRAM.keys())
def test_scram(pair: Pair, mechanism: str, arguments: list[str]) -> None:
    pair.same(by_scram(mechanism, *arguments))


def test_scram_that_is_none(pair: Pair) -> None:
    steps = [handshake("SCRAM-SHA-256"), message(b"hello")]
    pair.same(lambda side: tell(Client(side.server.bootstrap), steps))


TOKENS: dict[str, dict[str, Any]] = {
    "valid": {},
    "expired": {"iat": 1, "exp": 2},
    "without an end": {"exp": None},
    "of nobody": {"sub": None},
    "of a blank": {"sub": " "},
    "issued tomorrow": {"iat": 4_000_000_000, "exp": 4_000_000_001},
    "with an algorithm": {"algorithm": "RS256"},
}


@pytest.mark.parametrize("claims", TOKENS.values(), ids=TOKENS.keys())
def test_unsecured_tokens(pair: Pair, claims: dict[str, Any]) -> None:
    def scenario(side: Side) -> Any:
        content = sasl.bearer(sasl.unsecured_token(**claims))
        steps = [handshake("OAUTHBEARER"), message(content), message(b"\x01"), CLUSTER]
        seen = tell(Client(side.server.bootstrap), steps)
        if seen[1][1]["SessionLifetimeMs"]:
            seen[1][1]["SessionLifetimeMs"] = "until it expires"
        return seen

    pair.same(scenario)


@pytest.mark.parametrize(
    "content",
    [b"n,,\x01\x01", b"hello", sasl.bearer("abc"), sasl.bearer("a.b.c"), sasl.bearer("..")],
    ids=["empty", "no form", "no token", "no JSON", "dots"],
)
def test_tokens_that_are_none(pair: Pair, content: bytes) -> None:
    steps = [handshake("OAUTHBEARER"), message(content), message(b"\x01")]
    pair.same(lambda side: tell(Client(side.server.bootstrap), steps))


def test_a_token_for_somebody_else(pair: Pair) -> None:
    content = sasl.bearer(sasl.unsecured_token(), "n,a=bob,")
    steps = [handshake("OAUTHBEARER"), message(content)]
    pair.same(lambda side: tell(Client(side.server.bootstrap), steps))


@pytest.mark.parametrize("password", ["admin-secret", "wrong"])
def test_messages_without_a_header(pair: Pair, password: str) -> None:
    """As clients did before SaslAuthenticate."""

    def scenario(side: Side) -> Any:
        client = Client(side.server.bootstrap)
        client.handshake("PLAIN", 0)
        answer = client.bare_message(sasl.plain("admin", password))
        inside = answer != CLOSED and client.is_in()
        client.close()
        return [answer, inside]

    pair.same(scenario)


def test_a_client_of_kafka_0_9_with_kerberos(pair: Pair) -> None:
    pair.same(lambda side: Client(side.server.bootstrap).bare_message(b"\x60abcdefghijkl"))
