"""SCRAM users: the stored ones, which AlterUserScramCredentials changes, and the rules for that (KIP-554).

They live in the catalog's table ``scram``, by mechanism and name, as texts of scram_credentials.py. What is
stored is in force for the next login; who is logged in stays so, as in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
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

    def credentials(self, name: str) -> Mapping[str, ScramCredential]:
        """Those of a user, by mechanism; none: there is no such user."""
        return self._credentials.get(name, {})

    def names(self) -> list[str]:
        return list(self._credentials)

    def alter(
        self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
    ) -> tuple[dict[str, ApiError | None], Pending[None]]:
        """What becomes of each user; and when the changes of those without an error are in force."""
        results: dict[str, ApiError | None] = {}
        changes: dict[str, dict[str, str | None]] = {}
        asked: list[Deletion | Upsertion] = [*deletions, *upsertions]
        for each in asked:
            if each.name in results:
                if results[each.name] is None:
                    results[each.name] = ApiError(
                        ErrorCode.DUPLICATE_RESOURCE,
                        "A user credential cannot be altered twice in the same request",
                    )
                continue
            try:
                mechanism = _mechanism(each)
                if isinstance(each, Deletion):
                    self._check_deletion(each, mechanism)
                text = None if isinstance(each, Deletion) else _text(each, mechanism)
            except ApiError as error:
                results[each.name] = error
            else:
                results[each.name] = None
                changes[each.name] = {f"{mechanism}/{each.name}": text}
        taken = {
            key: text
            for name, change in changes.items()
            if results[name] is None
            for key, text in change.items()
        }
        return results, self._save(taken)

    def _check_deletion(self, deletion: Deletion, mechanism: str) -> None:
        if mechanism not in self.credentials(deletion.name):
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
            )

    def _save(self, changes: Mapping[str, str | None]) -> Pending[None]:
        result: Pending[None] = Pending()
        if not changes:
            result.resolve(None)
            return result

        def saved(saving: Pending[None]) -> None:
            if saving.succeeded:
                for key, text in changes.items():
                    self._put(key, text)
            result.follow(saving)

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
