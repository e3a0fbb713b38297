"""PLAIN (RFC 4616): one message with a name and a password."""

from __future__ import annotations

from collections.abc import Callable

from kbroker.pending import Pending, mapped
from kbroker.security.principal import Principal
from kbroker.security.sasl.exchange import Login, SaslFailure

OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"

Check = Callable[[str, str], bool | Pending[bool]]
"""Whether this is the password of this user; whoever checks takes as long for unknown users."""


class PlainExchange:
    def __init__(self, check: Check) -> None:
        self._check = check
        self.login: Login | None = None

    def evaluate(self, message: bytes) -> bytes | Pending[bytes]:
        parts = message.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise _failure(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        if not name:
            raise _failure("Authentication failed: username not specified")
        if not password:
            raise _failure("Authentication failed: password not specified")

        def checked(right: bool) -> bytes:
            if not right:
                raise _failure("Authentication failed: Invalid username or password")
            if authorization_id not in ("", name):
                raise _failure(OTHER_ID)
            self.login = Login(Principal("User", name))
            return b""

        return mapped(self._check(name, password), checked)


def _failure(told: str) -> SaslFailure:
    return SaslFailure(told, told)
