"""What a bearer token must say: the claims of a JWT, checked as Kafka checks them.

Signatures are checked elsewhere (authentication/jwks.py); unsecured tokens have none, and are for tests.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from kbroker.security.sasl.oauthbearer import BearerToken, InvalidToken

_MOST_PARTS = 3


class ClaimRules(NamedTuple):
    """Those of tokens with a signature."""

    audiences: Collection[str]
    issuer: str | None
    scope_claim: str
    sub_claim: str
    clock_skew_ms: int

    def check(self, claims: Mapping[str, Any], now_ms: int) -> BearerToken:
        expires_ms = _milliseconds(claims, "exp")
        if expires_ms is None or now_ms - self.clock_skew_ms >= expires_ms:
            raise InvalidToken("it has expired")
        issued_ms = _milliseconds(claims, "iat")
        if issued_ms is None:
            raise InvalidToken("it does not say when it was issued")
        begins_ms = _milliseconds(claims, "nbf")
        if max(issued_ms, begins_ms or 0) > expires_ms:
            raise InvalidToken("it ends before it begins")
        if begins_ms is not None and now_ms + self.clock_skew_ms < begins_ms:
            raise InvalidToken("it is not valid yet")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("it is of another issuer")
        self._check_audience(claims.get("aud"))
        self._check_scope(claims.get(self.scope_claim))
        return BearerToken(_name(claims, self.sub_claim), expires_ms)

    def _check_scope(self, claim: Any) -> None:
        """As Kafka: none is required, but what there is must make sense, unless it is of another type."""
        scopes = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        texts = [each.strip() for each in scopes if isinstance(each, str)]
        if "" in texts or len(set(texts)) < len(scopes):
            raise InvalidToken("its scope makes no sense")

    def _check_audience(self, claim: Any) -> None:
        """As Kafka: a token for somebody is not taken where nobody is expected."""
        named = [claim] if isinstance(claim, str) else claim or []
        if not isinstance(named, list):
            raise InvalidToken("its audience has another form")
        if (named or self.audiences) and not any(each in self.audiences for each in named):
            raise InvalidToken("it is for another audience")


def check_unsecured(token: str, options: Mapping[str, str], now_ms: int) -> BearerToken:
    """A token without a signature, by the options of Kafka's unsecured validator."""
    header, claims = _unsigned_parts(token)
    if header.get("alg") != "none" or not token.endswith("."):
        raise InvalidToken("a token without a signature is expected")
    skew_ms = int(options.get("unsecuredValidatorAllowableClockSkewMs", "").strip() or 0)
    expires_ms = _milliseconds(claims, "exp")
    issued_ms = _milliseconds(claims, "iat")
    if expires_ms is None or now_ms - skew_ms >= expires_ms:
        raise InvalidToken("it has expired")
    if issued_ms is not None and (now_ms + skew_ms < issued_ms or issued_ms >= expires_ms):
        raise InvalidToken("it was issued in the future")
    name = _name(claims, options.get("unsecuredValidatorPrincipalClaimName", "").strip() or "sub")
    scope_claim = options.get("unsecuredValidatorScopeClaimName", "").strip() or "scope"
    required = options.get("unsecuredValidatorRequiredScope", "").split()
    if not set(required) <= set(_scopes(claims.get(scope_claim))):
        raise InvalidToken("it lacks a scope", " ".join(required))
    return BearerToken(name, expires_ms)


def json_object(part: bytes) -> dict[str, Any]:
    try:
        value = json.loads(part)
    except (ValueError, RecursionError):
        raise InvalidToken("a part of it is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidToken("a part of it is not a JSON object")
    return value


def header_of(token: str) -> dict[str, Any]:
    return json_object(_decoded(token.partition(".")[0]))


def _unsigned_parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    parts = token.split(".")
    if len(parts) != _MOST_PARTS:
        raise InvalidToken("it has not three parts")
    return json_object(_decoded(parts[0])), json_object(_decoded(parts[1]))


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidToken("a part of it is not base64url") from None


def _milliseconds(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1 << 53:
        raise InvalidToken(f"its claim {name} is not a time")
    return int(value * 1000)


def _name(claims: Mapping[str, Any], claim: str) -> str:
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip():
        raise InvalidToken(f"its claim {claim} names nobody")
    return name.strip()


def _scopes(claim: Any) -> list[str]:
    scopes = claim.split() if isinstance(claim, str) else claim or []
    if not isinstance(scopes, list) or not all(isinstance(each, str) and each.strip() for each in scopes):
        raise InvalidToken("its scope has another form")
    return scopes
