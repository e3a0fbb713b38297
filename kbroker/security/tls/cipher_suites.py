"""ssl.cipher.suites: Java's names of cipher suites, which are IANA's, as OpenSSL calls them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kbroker.security.tls.errors import TlsError

_TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")
_NAME = r"TLS_(ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|DHE_DSS|RSA)_WITH_(\w+)"
_NO_RENEGOTIATION_MARK = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"  # Java's lists may have it; it is no suite


class CipherSuites(NamedTuple):
    openssl_names: list[str]
    """Of TLS 1.2."""
    tls_1_3: bool
    """Whether TLS 1.3 has suites here."""


def cipher_suites(names: Sequence[str]) -> CipherSuites | None:
    """None: the default. Raises TlsError."""
    given = [name.strip() for name in names if name.strip() and name.strip() != _NO_RENEGOTIATION_MARK]
    if not given:
        return None
    new = [name for name in given if name in _TLS_1_3]
    if new and set(new) != set(_TLS_1_3):
        missing = ", ".join(name for name in _TLS_1_3 if name not in new)
        raise TlsError(
            f"ssl.cipher.suites: suites of TLS 1.3 can only be taken all together, add {missing}, "
            "or leave them out to have TLS 1.2 only"
        )
    return CipherSuites([_openssl_name(name) for name in given if name not in _TLS_1_3], bool(new))


def _openssl_name(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256."""
    found = re.fullmatch(_NAME, name)
    if found is None:
        raise TlsError(f"ssl.cipher.suites: {name} is not the name of a cipher suite that there is here")
    exchange = "" if found[1] == "RSA" else found[1].replace("_", "-") + "-"
    cipher = re.sub(r"^(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", found[2])
    cipher = cipher.replace("_CBC", "").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return exchange + cipher.replace("_", "-")
