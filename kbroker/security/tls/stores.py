"""The key store and the trust store of a listener, whatever they are kept in: PEM files and texts, PKCS12,
JKS.

Which settings go together is Kafka's; JKS and PKCS12 are told apart by what is in the file, as Java does. PEM
and JKS need the standard library only; PKCS12 needs `cryptography`, which the extra kbroker[tls] brings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from kbroker.security.tls import jks, pem
from kbroker.security.tls.errors import TlsError

PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
_KINDS = (JKS, PKCS12, PEM)
_LARGEST_BYTES = 16 * 1024 * 1024


class KeyStore(NamedTuple):
    key: str
    """In PEM, perhaps encrypted."""
    password: str | None
    chain: list[bytes]
    """In DER, the broker's own certificate first."""
    file: str | None
    """Where it comes from, if not from a setting."""


class TrustStore(NamedTuple):
    certificates: list[bytes]
    file: str | None


def key_store(values: Mapping[str, Any]) -> KeyStore | None:
    """Raises TlsError. None: there are no settings of one."""
    kind, path = values["ssl.keystore.type"], values["ssl.keystore.location"]
    password = values["ssl.keystore.password"]
    key, chain = values["ssl.keystore.key"], values["ssl.keystore.certificate.chain"]
    key_password: str | None = values["ssl.key.password"]
    if key is not None or chain is not None:
        if key is None or chain is None:
            raise TlsError("ssl.keystore.key and ssl.keystore.certificate.chain go together: one is missing")
        _check_text("ssl.keystore", kind, path, password)
        try:
            return KeyStore(pem.private_key(key), key_password, pem.certificates(chain), None)
        except ValueError as error:
            raise TlsError(f"ssl.keystore.key, ssl.keystore.certificate.chain: {error}") from None
    _check_file("ssl.keystore", kind, path, password)
    if path is None:
        return None
    if kind != PEM and password is None:
        raise TlsError(f"ssl.keystore.password: the key store {path} needs it")
    data = _content("ssl.keystore.location", path)
    try:
        if kind == PEM:
            text = data.decode("utf-8", "replace")
            return KeyStore(pem.private_key(text), key_password, pem.certificates(text), path)
        if data.startswith(jks.MAGIC):
            return _from_jks(data, password, key_password or password, path)
        return _from_pkcs12(data, password, path)
    except ValueError as error:
        raise TlsError(f"ssl.keystore.location: {path}: {error}") from None


def trust_store(values: Mapping[str, Any]) -> TrustStore | None:
    """Raises TlsError. None: there are no settings of one."""
    kind, path = values["ssl.truststore.type"], values["ssl.truststore.location"]
    password = values["ssl.truststore.password"]
    text = values["ssl.truststore.certificates"]
    if text is not None:
        _check_text("ssl.truststore", kind, path, password)
        try:
            return TrustStore(pem.certificates(text), None)
        except ValueError as error:
            raise TlsError(f"ssl.truststore.certificates: {error}") from None
    _check_file("ssl.truststore", kind, path, password)
    if path is None:
        return None
    data = _content("ssl.truststore.location", path)
    try:
        if kind == PEM:
            found = pem.certificates(data.decode("utf-8", "replace"))
        elif data.startswith(jks.MAGIC):
            found = _trusted(jks.read(data, password))
        else:
            _, own, others = _pkcs12(data, password)
            found = [*own, *others]
        if not found:
            raise ValueError("there is no certificate in it")
    except ValueError as error:
        raise TlsError(f"ssl.truststore.location: {path}: {error}") from None
    return TrustStore(found, path)


def _check_text(prefix: str, kind: str, path: str | None, password: str | None) -> None:
    if kind != PEM:
        raise TlsError(f"{prefix}.type: keys and certificates as settings are PEM, and this is {kind}")
    if path is not None:
        raise TlsError(f"{prefix}.location: give a file or keys and certificates as settings, not both")
    if password is not None:
        raise TlsError(f"{prefix}.password: PEM has none; a key's is ssl.key.password")


def _check_file(prefix: str, kind: str, path: str | None, password: str | None) -> None:
    if path is None:
        if password is not None:
            raise TlsError(f"{prefix}.password: it is given, but {prefix}.location is not")
        return
    if kind not in _KINDS:
        raise TlsError(f"{prefix}.type: {kind} is not one of {', '.join(_KINDS)}")
    if kind == PEM and password is not None:
        raise TlsError(f"{prefix}.password: PEM has none; a key's is ssl.key.password")


def _content(setting: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST_BYTES:
                raise TlsError(f"{setting}: {path}: it is too large")
            return file.read()
    except OSError as error:
        raise TlsError(f"{setting}: {path}: {(error.strerror or str(error)).lower()}") from None


def _from_jks(data: bytes, password: str, key_password: str, path: str) -> KeyStore:
    keys = jks.read(data, password).keys
    if not keys:
        raise ValueError("there is no private key in it")
    key = pem.written("PRIVATE KEY", jks.decrypted(keys[0], key_password))
    return KeyStore(key, None, keys[0].chain, path)


def _trusted(store: jks.JavaKeyStore) -> list[bytes]:
    return [*store.certificates, *(entry.chain[0] for entry in store.keys if entry.chain)]


def _from_pkcs12(data: bytes, password: str, path: str) -> KeyStore:
    key, own, others = _pkcs12(data, password)
    if key is None or not own:
        raise ValueError("there is no private key with a certificate in it")
    return KeyStore(pem.written("PRIVATE KEY", key), None, [*own, *others], path)


def _pkcs12(data: bytes, password: str | None) -> tuple[bytes | None, list[bytes], list[bytes]]:
    """The key in PKCS8, its certificate, and the other certificates."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ValueError(
            "PKCS12 needs the package cryptography: pip install 'kbroker[tls]', or use PEM"
        ) from None
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        if "password" in str(error).lower() or "mac" in str(error).lower():
            raise ValueError("the password is wrong, or the file was changed") from None
        raise ValueError("it is neither PKCS12 nor JKS") from None
    key = None
    if store.key is not None:
        key = store.key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    encoding = serialization.Encoding.DER
    own = [] if store.cert is None else [store.cert.certificate.public_bytes(encoding)]
    return key, own, [each.certificate.public_bytes(encoding) for each in store.additional_certs]
