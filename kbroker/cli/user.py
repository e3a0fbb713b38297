"""`kbroker user`: those who log in by SCRAM, or by PLAIN where a kbroker offers it.

Through a broker, or, with --data, in the data directory of one that does not run: so comes the first user.
Passwords are never arguments, which others see: they are asked for, or read from standard input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from kbroker.cli import connection
from kbroker.cli.output import add_output_options, plural, print_rows, say
from kbroker.exit_codes import OK, USAGE, CommandFailed

if TYPE_CHECKING:
    from kbroker.security.users import Users as StoredUsers


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("user", help="users: create, list, delete, password, hash")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    create = _action(
        actions, "create", "make a user, whose password is asked for or read from standard input"
    )
    create.add_argument("user", metavar="NAME")
    create.set_defaults(run=_create)

    listing = _action(actions, "list", "the stored users, and the mechanisms that they log in by")
    add_output_options(listing)
    listing.set_defaults(run=_list)

    delete = _action(actions, "delete", "delete users; their connections are closed")
    delete.add_argument("users", nargs="+", metavar="NAME")
    delete.set_defaults(run=_delete)

    password = _action(
        actions, "password", "give a user another password, and close connections with the old one"
    )
    password.add_argument("user", metavar="NAME")
    password.set_defaults(run=_password)

    text = "print a user's lines for kbroker.users.file, with the password hashed"
    hashed = actions.add_parser("hash", help=text, description=text[0].upper() + text[1:] + ".")
    hashed.add_argument("user", metavar="NAME")
    hashed.set_defaults(run=_hash)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--data", metavar="DIR", help="in this data directory, of a broker that does not run")
    connection.add_connection_options(parser)
    return parser


def _create(arguments: argparse.Namespace) -> int:
    with _users(arguments) as users:
        if arguments.user in users.mechanisms():
            raise CommandFailed(
                f"there is a user {arguments.user}: 'kbroker user password' changes the password"
            )
        users.put(arguments.user, _ask_password(arguments.user))
    say(f"created user {arguments.user}")
    return OK


def _password(arguments: argparse.Namespace) -> int:
    with _users(arguments) as users:
        if arguments.user not in users.mechanisms():
            raise CommandFailed(f"there is no user {arguments.user}: 'kbroker user create' makes one")
        users.put(arguments.user, _ask_password(arguments.user))
    say(f"{arguments.user} has a new password")
    return OK


def _list(arguments: argparse.Namespace) -> int:
    with _users(arguments) as users:
        rows = [
            {
                "user": name,
                "mechanisms": ", ".join(f"{mechanism} ({count})" for mechanism, count in kinds.items()),
            }
            for name, kinds in sorted(users.mechanisms().items())
        ]
    print_rows(arguments, rows, {"user": "USER", "mechanisms": "MECHANISMS"})
    return OK


def _delete(arguments: argparse.Namespace) -> int:
    with _users(arguments) as users:
        known = users.mechanisms()
        unknown = [name for name in arguments.users if name not in known]
        if unknown:
            raise CommandFailed(f"there is no user {', '.join(unknown)}: 'kbroker user list' shows them")
        for name in arguments.users:
            users.delete(name, list(known[name]))
    say(f"deleted {plural(len(arguments.users), 'user')}")
    return OK


def _hash(arguments: argparse.Namespace) -> int:
    from kbroker.security.scram_credentials import HASHES, of_password, random_salt

    password = _ask_password(arguments.user)
    for mechanism in HASHES:
        credential = of_password(mechanism, password, random_salt())
        say(f"{arguments.user}:{credential.to_text(mechanism)}")
    return OK


def _ask_password(name: str) -> str:
    if sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"password of {name}: ")
        if getpass("again: ") != password:
            raise CommandFailed("the two passwords differ", USAGE)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise CommandFailed("a password is expected on standard input", USAGE)
    return password


class _Users(Protocol):
    """Where users are kept."""

    def mechanisms(self) -> Mapping[str, Mapping[str, int]]:
        """By user and mechanism the iterations."""

    def put(self, name: str, password: str) -> None: ...
    def delete(self, name: str, mechanisms: list[str]) -> None: ...


class _OfBroker:
    def __init__(self, client: Any) -> None:
        self._client = client

    def mechanisms(self) -> dict[str, dict[str, int]]:
        described = self._client.describe_user_scram_credentials()
        return {
            name: {
                info["mechanism"].name.replace("_", "-"): info["iterations"]
                for info in user["credential_infos"]
            }
            for name, user in described.items()
        }

    def put(self, name: str, password: str) -> None:
        from kbroker.security.scram_credentials import HASHES, random_salt

        make = connection.kafka().admin.UserScramCredentialUpsertion
        for mechanism in HASHES:  # a request alters a user once
            self._alter(make(name, mechanism, password, salt=random_salt()))

    def delete(self, name: str, mechanisms: list[str]) -> None:
        make = connection.kafka().admin.UserScramCredentialDeletion
        for mechanism in mechanisms:
            self._alter(make(name, mechanism))

    def _alter(self, alteration: Any) -> None:
        for name, problem in self._client.alter_user_scram_credentials([alteration]).items():
            if problem is not None:
                raise CommandFailed(f"user {name}: {problem or 'the broker refused'}")


class _OfDirectory:
    def __init__(self, stored: StoredUsers) -> None:
        self._stored = stored

    def mechanisms(self) -> dict[str, dict[str, int]]:
        return {
            name: {kind: credential.iterations for kind, credential in self._stored.credentials(name).items()}
            for name in self._stored.names()
        }

    def put(self, name: str, password: str) -> None:
        from kbroker.security.scram_credentials import MECHANISM_OF, MIN_ITERATIONS, random_salt, salted
        from kbroker.security.users import Upsertion

        for number, mechanism in MECHANISM_OF.items():
            salt = random_salt()
            hashed = salted(mechanism, password, salt, MIN_ITERATIONS)
            _alter(self._stored, Upsertion(name, number, MIN_ITERATIONS, salt, hashed))

    def delete(self, name: str, mechanisms: list[str]) -> None:
        from kbroker.security.scram_credentials import MECHANISM_OF
        from kbroker.security.users import Deletion

        for number, mechanism in MECHANISM_OF.items():
            if mechanism in mechanisms:
                _alter(self._stored, Deletion(name, number))


def _alter(stored: StoredUsers, change: Any) -> None:
    alteration = stored.alteration()
    alteration.take(change)
    for error in alteration.results.values():
        if error is not None:
            raise CommandFailed(str(error))
    alteration.save().result()


@contextmanager
def _users(arguments: argparse.Namespace) -> Iterator[_Users]:
    if arguments.data is None:
        with connection.admin(arguments) as client:
            yield _OfBroker(client)
        return
    from pathlib import Path

    from kbroker.catalog.sqlite.catalog import SqliteCatalog
    from kbroker.cli import offline
    from kbroker.security.users import TABLE, Users

    os.makedirs(arguments.data, exist_ok=True)
    with offline.locked(arguments.data, create=True):
        catalog = SqliteCatalog.open(Path(arguments.data), fsync=True)
        try:
            entries = catalog.snapshot().entries
            yield _OfDirectory(
                Users(catalog, {entry.key: entry.value for entry in entries if entry.table == TABLE})
            )
        finally:
            catalog.close()
