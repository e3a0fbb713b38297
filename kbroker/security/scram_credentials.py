"""SCRAM credentials (RFC 5802): what is kept of a password, enough to check a login and no more.

As text a credential is PostgreSQL's ``MECHANISM$ITERATIONS:SALT$STORED_KEY:SERVER_KEY`` with base64 parts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

SCRAM_SHA_256, SCRAM_SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384
"""Kafka takes no fewer and no more."""
HASHES = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
MECHANISM_OF = {1: SCRAM_SHA_256, 2: SCRAM_SHA_512}
"""By its number in requests."""
_TEXT = r"(SCRAM-SHA-256|SCRAM-SHA-512)\$([0-9]{1,9}):([^$:]*)\$([^$:]*):([^$:]*)"
_SALT_LETTERS = b"0123456789abcdefghijklmnopqrstuvwxyz"
_SALT_BYTES = 26


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def to_text(self, mechanism: str) -> str:
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{mechanism}${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        return "ScramCredential(hidden)"


def from_text(text: str) -> tuple[str, ScramCredential] | None:
    """The mechanism and the credential; None: this is no such text."""
    match = re.fullmatch(_TEXT, text)
    if match is None:
        return None
    try:
        salt, stored, server = (base64.b64decode(part, validate=True) for part in match.group(3, 4, 5))
    except binascii.Error:
        return None
    mechanism, iterations = match[1], int(match[2])
    size = hashlib.new(HASHES[mechanism]).digest_size
    fits = len(stored) == len(server) == size and salt and MIN_ITERATIONS <= iterations <= MAX_ITERATIONS
    return (mechanism, ScramCredential(salt, stored, server, iterations)) if fits else None


def of_password(
    mechanism: str, password: str, salt: bytes, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """Takes milliseconds, without the interpreter's lock."""
    return of_salted_password(mechanism, salted(mechanism, password, salt, iterations), salt, iterations)


def salted(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def of_salted_password(
    mechanism: str, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted_password, b"Server Key", name), iterations)


def has_password(mechanism: str, credential: ScramCredential, password: str) -> bool:
    """Takes milliseconds, without the interpreter's lock, whether it has or not."""
    tried = of_password(mechanism, password, credential.salt, credential.iterations)
    return hmac.compare_digest(tried.stored_key, credential.stored_key)


def random_salt() -> bytes:
    return _readable(secrets.token_bytes(_SALT_BYTES))


def derived_salt(secret: bytes, mechanism: str, name: str) -> bytes:
    """The salt of a user of whom none is stored: always the same."""
    digest = hmac.digest(secret, f"{mechanism} {name}".encode(), "sha256")
    return _readable(digest[:_SALT_BYTES])


def _readable(salt: bytes) -> bytes:
    """In the form of Kafka's tools, so that nobody's salt looks different from a user's."""
    return bytes(_SALT_LETTERS[byte % len(_SALT_LETTERS)] for byte in salt)


def nobodys(secret: bytes, mechanism: str, name: str) -> ScramCredential:
    """A credential that no password fits, for a name that nobody has."""
    hidden = hmac.digest(secret, f"nobody {mechanism} {name}".encode(), HASHES[mechanism])
    return ScramCredential(derived_salt(secret, mechanism, name), hidden, hidden, MIN_ITERATIONS)
