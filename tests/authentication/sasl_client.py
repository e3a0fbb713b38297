"""A raw client that logs in, well or badly."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from kbroker.protocol.messages.describe_cluster import DescribeClusterRequest
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.raw_client import RawClient

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def plain(client: RawClient, name: str, password: str, version: int = 2) -> Any:
    """The answer to the password."""
    client.ask(SaslHandshakeRequest("PLAIN"), 1)
    return client.ask(SaslAuthenticateRequest(f"\0{name}\0{password}".encode()), version)


def is_in(client: RawClient) -> bool:
    return bool(client.ask(DescribeClusterRequest(), 0).cluster_id)


class Scram:
    """The client's side of SCRAM, message by message."""

    def __init__(self, mechanism: str, name: str, password: str, extensions: str = "") -> None:
        self.mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._password = password
        self.bare = f"n={name},r=nonce-of-a-test{extensions}"
        self.server_first = ""
        self.verifier = b""

    @property
    def first(self) -> bytes:
        return f"n,,{self.bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        self.server_first = server_first.decode()
        parts = dict(part.split("=", 1) for part in self.server_first.split(","))
        salted = hashlib.pbkdf2_hmac(
            self._hash, self._password.encode(), base64.b64decode(parts["s"]), int(parts["i"])
        )
        key = hmac.digest(salted, b"Client Key", self._hash)
        unproved = f"c=biws,r={parts['r']}"
        said = f"{self.bare},{self.server_first},{unproved}".encode()
        signature = hmac.digest(hashlib.new(self._hash, key).digest(), said, self._hash)
        self.verifier = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), said, self._hash)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        return f"{unproved},p={proof}".encode()

    def log_in(self, client: RawClient) -> Any:
        """The answer to the proof."""
        client.ask(SaslHandshakeRequest(self.mechanism), 1)
        first = client.ask(SaslAuthenticateRequest(self.first), 2)
        if first.error_code:
            return first
        answer = client.ask(SaslAuthenticateRequest(self.final(first.auth_bytes)), 2)
        if not answer.error_code:
            assert answer.auth_bytes == b"v=" + base64.b64encode(self.verifier)
        return answer
