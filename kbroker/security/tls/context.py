"""The TLS context of a listener, made of its settings.

A context is made anew for new settings and new files, and never changed: connections keep the one they began
with.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kbroker.security.tls import pem
from kbroker.security.tls.certificate import Identity, identity
from kbroker.security.tls.cipher_suites import cipher_suites
from kbroker.security.tls.der import Malformed
from kbroker.security.tls.errors import TlsError
from kbroker.security.tls.principal_mapping import PrincipalMapping
from kbroker.security.tls.stores import KeyStore, TrustStore, key_store, trust_store

SETTINGS = (
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "ssl.protocol",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_SWITCHED_OFF = ("TLSv1", "TLSv1.1", "SSLv3", "SSLv2Hello")  # in Java, too, whatever is enabled
_PROTOCOLS = (
    "TLS",
    "TLSv1.1",
    "TLSv1.2",
    "TLSv1.3",
    "SSL",
)  # what Java calls a context; each can do all versions
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Tls(NamedTuple):
    context: ssl.SSLContext
    mapping: PrincipalMapping
    identity: Identity
    """Of the broker's own certificate."""
    has_trust_store: bool
    files: tuple[str, ...]
    """What it was made of."""


def make_tls(values: Mapping[str, Any]) -> Tls:
    """Of the values of all SETTINGS. Raises TlsError."""
    keys = key_store(values)
    if keys is None:
        raise TlsError("TLS needs a key: set ssl.keystore.location, or make one with 'kbroker tls init'")
    trusted = trust_store(values)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _choose_versions(context, values)
    own = _load_keys(context, keys)
    context.verify_mode = _CLIENT_AUTH[values["ssl.client.auth"]]
    if context.verify_mode != ssl.CERT_NONE:
        _load_trusted(context, trusted)
    files = tuple(each.file for each in (keys, trusted) if each is not None and each.file is not None)
    mapping = PrincipalMapping(values["ssl.principal.mapping.rules"])
    return Tls(context, mapping, own, trusted is not None, files)


def make_client_context(values: Mapping[str, Any]) -> ssl.SSLContext:
    """That of a client, of the values of all SETTINGS. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _choose_versions(context, values)
    keys = key_store(values)
    if keys is not None:
        _load_keys(context, keys)
    _load_trusted(context, trust_store(values))
    return context


def check_replacement(old: Tls, new: Tls, values: Mapping[str, Any]) -> None:
    """Whether a listener that has clients may go on with another key store. Raises TlsError."""
    was, becomes = old.identity.distinguished_name, new.identity.distinguished_name
    if not values["ssl.allow.dn.changes"] and was.lower() != becomes.lower():
        raise TlsError(
            f"ssl.keystore: the certificate is of {becomes}, and was of {was}; "
            "ssl.allow.dn.changes would allow that"
        )
    missing = old.identity.alternative_names - new.identity.alternative_names
    if not values["ssl.allow.san.changes"] and missing:
        raise TlsError(
            f"ssl.keystore: the certificate has lost {len(missing)} of its alternative names; "
            "ssl.allow.san.changes would allow that"
        )
    if new.has_trust_store and not old.has_trust_store:
        raise TlsError("ssl.truststore: a listener that was opened without a trust store cannot get one")


def _choose_versions(context: ssl.SSLContext, values: Mapping[str, Any]) -> None:
    protocol = values["ssl.protocol"]
    if protocol not in _PROTOCOLS:
        raise TlsError(f"ssl.protocol: {protocol} is not one of {', '.join(_PROTOCOLS)}")
    given = values["ssl.enabled.protocols"] or tuple(_VERSIONS)
    names = [name for name in given if name not in _SWITCHED_OFF]
    if not names:
        raise TlsError(f"ssl.enabled.protocols: none of them is safe; there are {', '.join(_VERSIONS)}")
    for name in names:
        if name not in _VERSIONS:
            raise TlsError(f"ssl.enabled.protocols: {name} is not one of {', '.join(_VERSIONS)}")
    suites = cipher_suites(values["ssl.cipher.suites"])
    versions = {_VERSIONS[name] for name in names}
    if suites is not None:
        if not suites.openssl_names:
            versions.discard(ssl.TLSVersion.TLSv1_2)
        if not suites.tls_1_3:
            versions.discard(ssl.TLSVersion.TLSv1_3)
        if not versions:
            raise TlsError("ssl.cipher.suites: there is none for the versions in ssl.enabled.protocols")
        if suites.openssl_names:
            _set_ciphers(context, suites.openssl_names)
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _set_ciphers(context: ssl.SSLContext, names: list[str]) -> None:
    for name in names:
        try:
            context.set_ciphers(name)
        except ssl.SSLError:
            raise TlsError(f"ssl.cipher.suites: OpenSSL has no suite {name} here") from None
    context.set_ciphers(":".join(names))


def _load_keys(context: ssl.SSLContext, keys: KeyStore) -> Identity:
    source = keys.file or "ssl.keystore.key"
    where = f"ssl.keystore.location: {keys.file}" if keys.file else source
    if pem.is_encrypted(keys.key) and keys.password is None:
        raise TlsError(f"{where}: the private key is encrypted; its password is missing (ssl.key.password)")
    try:
        own = identity(keys.chain[0])
        text = keys.key + "".join(ssl.DER_cert_to_PEM_cert(each) for each in keys.chain)
        with _as_file(text) as path:
            # Never None: OpenSSL would ask on the terminal.
            context.load_cert_chain(path, password=keys.password or "")
    except Malformed:
        raise TlsError(f"{where}: the certificate is damaged") from None
    except ssl.SSLError as error:
        raise TlsError(f"{where}: {_why(error, encrypted=pem.is_encrypted(keys.key))}") from None
    return own


def _why(error: ssl.SSLError, *, encrypted: bool) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the private key is not that of the first certificate"
    if encrypted:
        return "the private key cannot be decrypted: its password is wrong (ssl.key.password)"
    return f"the private key or a certificate cannot be read ({error.reason or 'damaged'})"


def _load_trusted(context: ssl.SSLContext, trusted: TrustStore | None) -> None:
    if trusted is None:  # as in Java, those that the system trusts
        context.set_default_verify_paths()
        return
    # Whatever is in a trust store is trusted, also a certificate that another one has signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    where = f"ssl.truststore.location: {trusted.file}" if trusted.file else "ssl.truststore.certificates"
    try:
        context.load_verify_locations(cadata=b"".join(trusted.certificates))
    except ssl.SSLError as error:
        raise TlsError(f"{where}: a certificate cannot be read ({error.reason or 'damaged'})") from None


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """OpenSSL takes keys from files only: one in memory, where there are such."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kbroker-tls", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "w", closefd=False) as file:
                file.write(text)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="kbroker-tls-") as temporary:  # readable by this user only
        temporary.write(text)
        temporary.flush()
        yield temporary.name
