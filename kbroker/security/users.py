"""SCRAM users: the stored ones, which AlterUserScramCredentials changes, and the rules for that (KIP-554).

They live in the catalog's table ``scram``, by mechanism and name, as texts of scram_credentials.py. What is
stored is in force at once: who logged in with what is changed or deleted has to log in again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.scram_credentials import (
    MAX_ITERATIONS,
    MECHANISM_OF,
    MIN_ITERATIONS,
    ScramCredential,
    from_text,
    of_salted_password,
)

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog

logger = logging.getLogger("kbroker.users")

TABLE = "scram"


class Deletion(NamedTuple):
    name: str
    mechanism: int


class Upsertion(NamedTuple):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class Users:
    def __init__(self, catalog: Catalog, stored: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._credentials: dict[str, dict[str, ScramCredential]] = {}  # by name and mechanism
        for key, text in stored.items():
            self._put(key, text)
        self._listeners: list[Callable[[str, bool], None]] = []

    def on_change(self, listener: Callable[[str, bool], None]) -> None:
        """``listener(name, new)`` is called when a credential that a user had is no longer valid.

        And when there is a new user, who hides one of the same name from elsewhere.
        """
        self._listeners.append(listener)

    def credentials(self, name: str) -> Mapping[str, ScramCredential]:
        """Those of a user, by mechanism; none: there is no such user."""
        return self._credentials.get(name, {})

    def names(self) -> list[str]:
        return list(self._credentials)

    def alteration(self) -> Alteration:
        """Of some users, together."""
        return Alteration(self)

    def save(self, changes: Mapping[str, str | None]) -> Pending[None]:
        result: Pending[None] = Pending()
        if not changes:
            result.resolve(None)
            return result

        def saved(saving: Pending[None]) -> None:
            changed: dict[str, bool] = {}  # by name whether the user is new
            if saving.succeeded:
                for key, text in changes.items():
                    mechanism, _, name = key.partition("/")
                    known = self.credentials(name)
                    if not known or mechanism in known:
                        changed.setdefault(name, not known)
                    self._put(key, text)
            result.follow(saving)
            for name, new in changed.items():
                for listener in self._listeners:
                    listener(name, new)

        self._catalog.save_entries(TABLE, changes).then(saved)
        return result

    def _put(self, key: str, text: str | None) -> None:
        mechanism, _, name = key.partition("/")
        if text is None:
            credentials = self._credentials.get(name, {})
            credentials.pop(mechanism, None)
            if not credentials:
                self._credentials.pop(name, None)
        elif (found := from_text(text)) is not None:
            self._credentials.setdefault(name, {})[mechanism] = found[1]
        else:
            logger.warning("the stored %s credential of %s is of another form and ignored", mechanism, name)


class Alteration:
    """What a request alters: each user once, and those without an error even if others have one."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._changes: dict[str, tuple[str, str | None]] = {}  # by user: the entry, and what becomes of it
        self.results: dict[str, ApiError | None] = {}
        """By user what is wrong; None: nothing."""

    def take(self, change: Deletion | Upsertion) -> None:
        name = change.name
        if name in self.results:
            if self.results[name] is None:
                del self._changes[name]
                self.results[name] = ApiError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            return
        try:
            mechanism = _mechanism(change)
            text = None if isinstance(change, Deletion) else _text(change, mechanism)
            if text is None and mechanism not in self._users.credentials(name):
                raise ApiError(
                    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
                )
        except ApiError as error:
            self.results[name] = error
        else:
            self.results[name] = None
            self._changes[name] = (f"{mechanism}/{name}", text)

    def save(self) -> Pending[None]:
        """When it is stored, and in force."""
        return self._users.save(dict(self._changes.values()))


def _mechanism(change: Deletion | Upsertion) -> str:
    if not change.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = MECHANISM_OF.get(change.mechanism)
    if mechanism is None:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return mechanism


def _text(upsertion: Upsertion, mechanism: str) -> str:
    if upsertion.iterations < MIN_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    _, _, iterations, salt, salted_password = upsertion
    return of_salted_password(mechanism, salted_password, salt, iterations).to_text(mechanism)


class GivenUser(NamedTuple):
    """One of a setting or a file: with a password, or with credentials by mechanism."""

    name: str
    password: str | None
    credentials: Mapping[str, ScramCredential]


class BadUser(ValueError):
    """An entry that names no user; the text says why, without its secret."""


def parse_users(entries: Iterable[str]) -> dict[str, GivenUser]:
    """Of ``NAME:PASSWORD`` and ``NAME:CREDENTIAL``; credentials of several mechanisms are an entry each."""
    users: dict[str, GivenUser] = {}
    for number, entry in enumerate(entries, 1):
        name, colon, secret = entry.partition(":")
        if not colon or not name or not secret:
            raise BadUser(f"entry {number} is not NAME:PASSWORD")
        found = from_text(secret)
        if found is None and secret.startswith("SCRAM-SHA-"):
            raise BadUser(f"the SCRAM credential of {name} is not MECHANISM$ITERATIONS:SALT$STORED:SERVER")
        known = users.get(name)
        if known is not None and (
            found is None or known.password is not None or found[0] in known.credentials
        ):
            raise BadUser(f"{name} is given twice")
        if found is None:
            users[name] = GivenUser(name, secret, {})
        else:
            users[name] = GivenUser(name, None, {**(known.credentials if known else {}), found[0]: found[1]})
    return users
