"""Delegation tokens (KIP-48, KIP-373): made by who is logged in, for who then logs in by SCRAM with them.

A token's HMAC is its password, made of its id and delegation.token.secret.key; it is not stored. Tokens live
in the catalog's table ``tokens`` until they expire: by their own time, which owner and renewers may put off
up to the end of their life, or at once by request. What has expired is refused at once, and swept later.
"""

from __future__ import annotations

import base64
import hmac
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.principal import Principal

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog

logger = logging.getLogger("kbroker.delegation_tokens")

T = TypeVar("T")
R = TypeVar("R")

TABLE = "tokens"
_MAX_LONG = (1 << 63) - 1


class DelegationToken(NamedTuple):
    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    def belongs_to(self, principal: Principal) -> bool:
        """As its owner or as one who may renew it."""
        return principal == self.owner or principal in self.renewers

    def has_expired(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def to_text(self) -> str:
        return json.dumps({**self._asdict(), "renewers": [list(each) for each in self.renewers]})

    @classmethod
    def from_text(cls, text: str) -> DelegationToken:
        fields = json.loads(text)
        for name in ("owner", "requester"):
            fields[name] = Principal(*fields[name])
        fields["renewers"] = tuple(Principal(*each) for each in fields["renewers"])
        return cls(**fields)


class Lifetimes(NamedTuple):
    max_ms: int
    expiry_ms: int


class DelegationTokens:
    def __init__(
        self,
        catalog: Catalog,
        stored: Mapping[str, str],
        secret: str | None,
        lifetimes: Lifetimes,
    ) -> None:
        """``secret``: None where there are to be no tokens."""
        self._catalog = catalog
        self._secret = None if secret is None else secret.encode()
        self._lifetimes = lifetimes
        self._tokens: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}  # by HMAC
        if self._secret is not None:
            for text in stored.values():
                self._put(DelegationToken.from_text(text))

    @property
    def enabled(self) -> bool:
        return self._secret is not None

    def get(self, token_id: str) -> DelegationToken | None:
        return self._tokens.get(token_id)

    def all(self) -> list[DelegationToken]:
        self._check_enabled()
        return list(self._tokens.values())

    def hmac_of(self, token: DelegationToken) -> bytes:
        assert self._secret is not None
        return hmac.digest(self._secret, token.token_id.encode(), "sha512")

    def password_of(self, token: DelegationToken) -> str:
        """What a client logs in with."""
        return base64.b64encode(self.hmac_of(token)).decode()

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Iterable[Principal],
        max_lifetime_ms: int,
        now_ms: int,
    ) -> Pending[DelegationToken]:
        self._check_enabled()
        longest_ms = self._lifetimes.max_ms
        if max_lifetime_ms > 0:
            longest_ms = min(longest_ms, max_lifetime_ms)
        max_ms = _sum(now_ms, longest_ms)
        expires_ms = min(max_ms, _sum(now_ms, self._lifetimes.expiry_ms))
        token_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        token = DelegationToken(token_id, owner, requester, tuple(renewers), now_ms, expires_ms, max_ms)
        return self._save(token)

    def renew(self, mac: bytes, caller: Principal, period_ms: int, now_ms: int) -> Pending[DelegationToken]:
        token = self._find(mac)
        if token.has_expired(now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _check_belongs(token, caller)
        longest_ms = self._lifetimes.expiry_ms
        if period_ms > 0:
            longest_ms = min(longest_ms, period_ms)
        return self._save(token._replace(expires_ms=min(token.max_ms, _sum(now_ms, longest_ms))))

    def expire(self, mac: bytes, caller: Principal, period_ms: int, now_ms: int) -> Pending[int]:
        """When it expires now; ``period_ms`` below 0: at once."""
        token = self._find(mac)
        _check_belongs(token, caller)
        if period_ms < 0:
            return _later(self._remove([token]), lambda _: now_ms)
        if token.has_expired(now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        expires_ms = min(token.max_ms, _sum(now_ms, period_ms))
        return _later(self._save(token._replace(expires_ms=expires_ms)), lambda saved: saved.expires_ms)

    def sweep(self, now_ms: int) -> None:
        """Forget those that have expired."""
        expired = [token for token in self._tokens.values() if token.has_expired(now_ms)]
        if expired:
            logger.info("%d delegation tokens have expired", len(expired))
            self._remove(expired)

    def _check_enabled(self) -> None:
        if self._secret is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

    def _find(self, mac: bytes) -> DelegationToken:
        self._check_enabled()
        token = self._tokens.get(self._ids.get(bytes(mac), ""))
        if token is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token

    def _put(self, token: DelegationToken) -> None:
        self._tokens[token.token_id] = token
        self._ids[self.hmac_of(token)] = token.token_id

    def _save(self, token: DelegationToken) -> Pending[DelegationToken]:
        def saved(_: None) -> DelegationToken:
            self._put(token)
            return token

        return _later(self._catalog.save_entries(TABLE, {token.token_id: token.to_text()}), saved)

    def _remove(self, tokens: list[DelegationToken]) -> Pending[None]:
        def removed(_: None) -> None:
            for token in tokens:
                self._tokens.pop(token.token_id, None)
                self._ids.pop(self.hmac_of(token), None)

        changes: dict[str, str | None] = dict.fromkeys((token.token_id for token in tokens), None)
        return _later(self._catalog.save_entries(TABLE, changes), removed)


def _later(saving: Pending[T], build: Callable[[T], R]) -> Pending[R]:
    built = mapped(saving, build)
    return built if isinstance(built, Pending) else Pending.resolved(built)


def _check_belongs(token: DelegationToken, caller: Principal) -> None:
    if not token.belongs_to(caller):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _sum(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _MAX_LONG)
