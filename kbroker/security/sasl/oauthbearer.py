"""OAUTHBEARER (RFC 7628, KIP-255): one message with a token; a refusal is told as JSON, and ends later.

The client answers the JSON with a single byte 1, and hears the same as the error of its login.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from kbroker.pending import Pending, mapped
from kbroker.security.principal import Principal
from kbroker.security.sasl.exchange import Login, SaslFailure

_FIRST = re.compile(
    r"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_GIVEN_UP = b"\x01"


class BearerToken(NamedTuple):
    """A token that is valid, as far as a login needs it."""

    principal_name: str
    expires_ms: int


class InvalidToken(Exception):
    """The text is for the log; the client hears the status, and the scope that it lacks."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope

    def to_json(self) -> str:
        """As Kafka writes it: with a blank behind the comma, and none behind colons."""
        if self.scope is None:
            return '{"status":"invalid_token"}'
        return f'{{"status":"insufficient_scope", "scope":{json.dumps(self.scope)}}}'


Validate = Callable[[str], BearerToken | Pending[BearerToken]]
"""Raises, or fails with, InvalidToken."""


class OAuthBearerExchange:
    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refusal: tuple[str, str] | None = None  # what the client was told, and why
        self.login: Login | None = None

    def evaluate(self, message: bytes) -> bytes | Pending[bytes]:
        if self._refusal is not None:
            told, reason = self._refusal
            self._refusal = None
            if message == _GIVEN_UP:
                raise SaslFailure(reason, told)
        authorization_id, token = _parsed(message)

        def valid(bearer: BearerToken) -> bytes:
            name = bearer.principal_name
            if authorization_id not in ("", name):
                told = (
                    f"Authentication failed: Client requested an authorization id ({authorization_id}) "
                    f"that is different from the token's principal name ({name})"
                )
                raise SaslFailure(told, told)
            self.login = Login(Principal("User", name), bearer.expires_ms)
            return b""

        def otherwise(error: Exception) -> bytes:
            if not isinstance(error, InvalidToken):
                raise error
            told = error.to_json()
            self._refusal = (told, str(error))
            return told.encode()

        try:
            checked = self._validate(token)
        except InvalidToken as error:
            return otherwise(error)
        return mapped(checked, valid, otherwise)


def _parsed(message: bytes) -> tuple[str, str]:
    """The authorization id, maybe empty, and the token."""
    match = _FIRST.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise SaslFailure("the client's first message has another form")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise SaslFailure("the client's first message has no bearer token")
    return match["authzid"] or "", auth["token"]
