"""Brokers that ask who comes, and raw logins to them: the same settings for both."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import ssl
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple

from compat.harness.connection import Connection, ConnectionClosed

ADMIN, ALICE = ("admin", "admin-secret"), ("alice", "alice-secret")
"""Users of PLAIN, and, where `make_users` was called, of SCRAM."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
CLOSED = "connection closed"

_SECURITY = "org.apache.kafka.common.security"
_UNSECURED = f"{_SECURITY}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        f'{_SECURITY}.plain.PlainLoginModule required username="{ADMIN[0]}" password="{ADMIN[1]}" '
        f'user_{ADMIN[0]}="{ADMIN[1]}" user_{ALICE[0]}="{ALICE[1]}";'
    ),
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
    "listener.name.plaintext.oauthbearer.sasl.jaas.config": (
        f'{_SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    ),
    "listener.name.plaintext.oauthbearer.sasl.server.callback.handler.class": _UNSECURED,
    "delegation.token.secret.key": "token-secret",
}
OVER_TLS = {"listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT"}
"""With `compat.harness.tls.store_settings`: the same over TLS."""
WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN[0]};User:ANONYMOUS",  # Kafka's controller, which is not asked
}
KBROKER_ALONE = {"kbroker.login.failure.delay.max.ms": "0"}
"""So that tests need not wait: all come from one address."""


def plain(name: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{name}\0{password}".encode()


def unsecured_token(algorithm: str = "none", **claims: Any) -> str:
    now = int(time.time())
    given = {"sub": "joe", "iat": now, "exp": now + 600, **claims}
    payload = {name: value for name, value in given.items() if value is not None}
    parts = [json.dumps(part).encode() for part in ({"alg": algorithm}, payload)]
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), ""])


def bearer(token: str, header: str = "n,,") -> bytes:
    return f"{header}\x01auth=Bearer {token}\x01\x01".encode()


def upsertion(name: str, password: str, mechanism: int = 1, iterations: int = 4096) -> dict[str, Any]:
    salt = b"salt-of-a-test"
    hashed = hashlib.pbkdf2_hmac(
        "sha512" if mechanism == 2 else "sha256", password.encode(), salt, max(iterations, 1)
    )
    return {
        "Name": name,
        "Mechanism": mechanism,
        "Iterations": iterations,
        "Salt": salt,
        "SaltedPassword": hashed,
    }


@functools.lru_cache
def salted_password(kind: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Once: it takes the client longer than all else of a login."""
    return hashlib.pbkdf2_hmac(kind, password.encode(), salt, iterations)


class SaslServer(NamedTuple):
    """A broker that clients log in to, over TLS."""

    bootstrap: str
    ca: Path

    def java_configs(self, name: str, password: str) -> dict[str, str]:
        """Of a client that logs in by PLAIN."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": (
                f'{_SECURITY}.plain.PlainLoginModule required username="{name}" password="{password}";'
            ),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }

    def librdkafka_configs(self, name: str, password: str) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": name,
            "sasl.password": password,
            "ssl.ca.location": str(self.ca),
        }


class Client:
    """A raw connection that says what it saw."""

    def __init__(self, bootstrap: str, tls: ssl.SSLContext | None = None) -> None:
        self.connection = Connection(bootstrap, timeout=20, tls=tls)

    def ask(self, api_name: str, version: int, values: dict[str, Any] | None = None) -> Any:
        try:
            return self.connection.ask(api_name, version, values or {})
        except ConnectionClosed:
            return CLOSED

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        answer = self.ask("SaslHandshake", version, {"Mechanism": mechanism})
        if answer != CLOSED:
            answer["Mechanisms"].sort()  # Kafka's come in the order of a hash table
        return answer

    def message(self, message: bytes, version: int = 2) -> Any:
        return self.ask("SaslAuthenticate", version, {"AuthBytes": message})

    def bare_message(self, message: bytes) -> Any:
        self.connection.send_bytes(struct.pack(">i", len(message)) + message)
        try:
            return self.connection.receive_frame()
        except ConnectionClosed:
            return CLOSED

    def scram(
        self,
        mechanism: str,
        name: str,
        password: str,
        extensions: str = "",
        header: str = "n,,",
        before_nonce: str = "",
    ) -> Any:
        """The answer that ends the exchange."""
        self.handshake(mechanism)
        bare = f"n={name},r=nonce{extensions}"
        first = self.message(f"{header}{bare}".encode())
        if first == CLOSED or first["ErrorCode"]:
            return first
        said = first["AuthBytes"].decode()
        parts = dict(part.split("=", 1) for part in said.split(","))
        kind = HASHES[mechanism]
        salt = base64.b64decode(parts["s"])
        salted = salted_password(kind, password, salt, int(parts["i"]))
        key = hmac.digest(salted, b"Client Key", kind)
        unproved = f"c={base64.b64encode(header.encode()).decode()},r={before_nonce}{parts['r']}"
        stored = hashlib.new(kind, key).digest()
        signature = hmac.digest(stored, f"{bare},{said},{unproved}".encode(), kind)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        answer = self.message(f"{unproved},p={base64.b64encode(proof).decode()}".encode())
        if answer != CLOSED and answer["AuthBytes"]:
            answer["AuthBytes"] = len(answer["AuthBytes"])  # the verifier: another one each time
        return answer

    def is_in(self) -> bool:
        answer = self.ask("DescribeCluster", 0)
        return bool(answer != CLOSED and answer["ErrorCode"] == 0)

    def close(self) -> None:
        self.connection.close()


def logged_in(
    bootstrap: str, name: str = ADMIN[0], password: str = ADMIN[1], tls: ssl.SSLContext | None = None
) -> Client:
    client = Client(bootstrap, tls)
    client.handshake("PLAIN")
    assert client.message(plain(name, password))["ErrorCode"] == 0
    return client


def make_users(bootstrap: str, tls: ssl.SSLContext | None = None) -> None:
    """The users of PLAIN become those of SCRAM, too."""
    admin = logged_in(bootstrap, tls=tls)
    for mechanism in (1, 2):
        users = [upsertion(name, password, mechanism) for name, password in (ADMIN, ALICE)]
        answer = admin.ask("AlterUserScramCredentials", 0, {"Deletions": [], "Upsertions": users})
        assert {each["ErrorCode"] for each in answer["Results"]} == {0}
    admin.close()
    for mechanism in HASHES:
        for name, password in (ADMIN, ALICE):
            deadline = time.monotonic() + 20
            while not _can_log_in(bootstrap, mechanism, name, password, tls):
                assert time.monotonic() < deadline, f"{name} cannot log in by {mechanism}"
                time.sleep(0.05)


def _can_log_in(bootstrap: str, mechanism: str, name: str, password: str, tls: ssl.SSLContext | None) -> bool:
    client = Client(bootstrap, tls)
    try:
        answer = client.scram(mechanism, name, password)
        return bool(answer != CLOSED and answer["ErrorCode"] == 0)
    finally:
        client.close()
