"""Java's own key stores (JKS): the certificates and the private keys in one.

    store: magic FEEDFEED, version 1 or 2, count of entries, entries, SHA-1 of password, a phrase and all this
    entry: kind (1: key, 2: certificate), alias, creation time, then an encrypted key and its chain, or one
           certificate
    encrypted key: EncryptedPrivateKeyInfo of Sun's algorithm: salt (20), key XOR key stream, SHA-1 of
           password and key

Java makes PKCS12 stores today, and JKS ones only where it is told to; the libraries that read them are not
kept up, and would bring four others along.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple

from kbroker.security.tls.der import Malformed, first, object_identifier

MAGIC = b"\xfe\xed\xfe\xed"
_KEY, _CERTIFICATE = 1, 2
_PHRASE = b"Mighty Aphrodite"
_SUN_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
_DIGEST_BYTES = 20


class KeyEntry(NamedTuple):
    encrypted_key: bytes
    chain: list[bytes]


class JavaKeyStore(NamedTuple):
    keys: list[KeyEntry]
    certificates: list[bytes]


def read(data: bytes, password: str | None) -> JavaKeyStore:
    """Raises ValueError. Without a password nobody knows whether the store was changed."""
    if password is not None:
        digest = hashlib.sha1(_utf16(password) + _PHRASE + data[:-_DIGEST_BYTES]).digest()
        if not hmac.compare_digest(digest, data[-_DIGEST_BYTES:]):
            raise ValueError("the password is wrong, or the file was changed")
    try:
        return _read(_Reader(data))
    except (struct.error, UnicodeDecodeError, Malformed):
        raise ValueError("it is damaged") from None


def decrypted(key: KeyEntry, password: str) -> bytes:
    """The private key in PKCS8. Raises ValueError."""
    try:
        algorithm, content = list(first(key.encrypted_key))
        if object_identifier(algorithm.child(0, 0x06).content) != _SUN_KEY_PROTECTOR:
            raise ValueError("its key is encrypted in an unknown way")
    except Malformed:
        raise ValueError("its key is damaged") from None
    salt = content.content[:_DIGEST_BYTES]
    scrambled = content.content[_DIGEST_BYTES:-_DIGEST_BYTES]
    secret = _utf16(password)
    stream = b""
    block = salt
    while len(stream) < len(scrambled):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    plain = bytes(left ^ right for left, right in zip(scrambled, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), content.content[-_DIGEST_BYTES:]):
        raise ValueError("the key's password is wrong")
    return plain


def _read(reader: _Reader) -> JavaKeyStore:
    store = JavaKeyStore([], [])
    reader.take(4)
    version = reader.number()
    if version not in (1, 2):
        raise ValueError(f"its version {version} is unknown")
    for _ in range(reader.number()):
        kind = reader.number()
        reader.short_bytes()  # alias
        reader.take(8)  # creation time
        if kind == _KEY:
            encrypted = reader.long_bytes()
            chain = [_certificate(reader, version) for _ in range(reader.number())]
            store.keys.append(KeyEntry(encrypted, chain))
        elif kind == _CERTIFICATE:
            store.certificates.append(_certificate(reader, version))
        else:
            raise ValueError("it is damaged")
    return store


def _certificate(reader: _Reader, version: int) -> bytes:
    if version == 2:
        reader.short_bytes()  # X.509
    return reader.long_bytes()


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        taken = self._data[self._position : self._position + size]
        if len(taken) != size:
            raise Malformed("it ends too soon")
        self._position += size
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def short_bytes(self) -> bytes:
        return self.take(int.from_bytes(self.take(2), "big"))

    def long_bytes(self) -> bytes:
        return self.take(self.number())
