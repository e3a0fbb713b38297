"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the server's side, as Kafka speaks it.

No channel binding (``n``). The extension ``tokenauth=true`` says that the name is the id of a delegation
token (KIP-48). An unknown name is answered like a known one, with a salt of its own, and fails with the
proof: the client cannot tell which of the two was wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import NamedTuple

from kbroker.pending import Pending, mapped
from kbroker.security.sasl.exchange import Login, SaslFailure
from kbroker.security.sasl.plain import OTHER_ID
from kbroker.security.scram_credentials import HASHES, ScramCredential

_NAME = r"(?:[^=,\x00]|=2C|=3D)+"
_VALUE = r"[^,\x00]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"[a-zA-Z0-9/+=]*"
_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>(?:,[A-Za-z]+={_VALUE})*))"
)
_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE})(?:,[A-Za-z]+={_VALUE})*),p=(?P<proof>{_BASE64})"
)
_NONCE_BYTES = 24
_TOKEN = "tokenauth"


class Known(NamedTuple):
    """Of the name that a client gives."""

    credential: ScramCredential
    login: Login | None
    """None: there is no such user or token, and no proof is right."""


Lookup = Callable[[str, bool], Known | Pending[Known]]
"""By name; True: that of a delegation token."""


class ScramExchange:
    def __init__(self, mechanism: str, lookup: Lookup) -> None:
        self._hash = HASHES[mechanism]
        self._lookup = lookup
        self._known: Known | None = None
        self._header = ""
        self._nonce = ""
        self._said = ""  # by both, up to the final message
        self.login: Login | None = None

    def evaluate(self, message: bytes) -> bytes | Pending[bytes]:
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise SaslFailure("the message is not UTF-8") from None
        return self._first(text) if self._known is None else self._final(text, self._known)

    def _first(self, text: str) -> bytes | Pending[bytes]:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise SaslFailure("the client's first message has another form")
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        extensions = dict(part.split("=", 1) for part in match["extensions"].split(",") if part)
        by_token = extensions.get(_TOKEN, "").lower() == "true"

        def found(known: Known) -> bytes:
            if match["authzid"] not in (None, match["name"]):
                raise SaslFailure(OTHER_ID, OTHER_ID)
            self._known = known
            self._header = match["header"]
            self._nonce = match["nonce"] + secrets.token_urlsafe(_NONCE_BYTES)
            salt = base64.b64encode(known.credential.salt).decode()
            first = f"r={self._nonce},s={salt},i={known.credential.iterations}"
            self._said = f"{match['bare']},{first}"
            return first.encode()

        return mapped(self._lookup(name, by_token), found)

    def _final(self, text: str, known: Known) -> bytes:
        self._known = None
        match = _FINAL.fullmatch(text)
        if match is None:
            raise SaslFailure("the client's final message has another form")
        try:
            binding, proof = (base64.b64decode(match[part], validate=True) for part in ("binding", "proof"))
        except binascii.Error:
            raise SaslFailure("the client's final message is not base64") from None
        # librdkafka before 2.6.1 puts its own nonce in front once more; Kafka 4 refuses that, too.
        if binding != self._header.encode() or not hmac.compare_digest(match["nonce"], self._nonce):
            raise SaslFailure("the client's final message belongs to another exchange")
        said = f"{self._said},{match['unproved']}".encode()
        credential = known.credential
        signature = hmac.digest(credential.stored_key, said, self._hash)
        if len(proof) != len(signature):
            raise SaslFailure("the proof has another size")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key) or known.login is None:
            raise SaslFailure("the proof is wrong")
        self.login = known.login
        verifier = hmac.digest(credential.server_key, said, self._hash)
        return b"v=" + base64.b64encode(verifier)
