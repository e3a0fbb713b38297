"""PEM: certificates and a key in text, as tolerant as Kafka: blanks may stand for line breaks, and anything
may stand around the entries.
"""

from __future__ import annotations

import base64
import binascii
import re
import textwrap

_ENTRY = (
    r"-+BEGIN\s+([^-]*?)\s*-+\s+"
    r"((?:[^\r\n:]+:[^\r\n]*[\r\n]+)*)"  # parameters of an old kind of encryption
    r"([a-zA-Z0-9/+=\s]*)-+END\s+[^-]*-+"
)


def certificates(text: str) -> list[bytes]:
    """Those in a text, in DER. Raises ValueError."""
    found = [_decoded(body) for label, _, body in _entries(text) if label.endswith("CERTIFICATE")]
    if not found:
        raise ValueError("there is no certificate in it")
    return found


def private_key(text: str) -> str:
    """The one key in a text, in well-formed PEM. Raises ValueError."""
    keys = [entry for entry in _entries(text) if entry[0].endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise ValueError(
            "there is no private key in it" if not keys else f"{len(keys)} private keys are in it"
        )
    label, parameters, body = keys[0]
    if parameters:
        parameters = parameters.replace("\r", "").strip() + "\n\n"
    return written(label, _decoded(body), parameters)


def is_encrypted(key: str) -> bool:
    """Whether a key, in well-formed PEM, needs a password."""
    return any("ENCRYPTED" in line for line in key.splitlines()[:2])


def written(label: str, content: bytes, parameters: str = "") -> str:
    body = "\n".join(textwrap.wrap(base64.b64encode(content).decode(), 64))
    return f"-----BEGIN {label}-----\n{parameters}{body}\n-----END {label}-----\n"


def _entries(text: str) -> list[tuple[str, str, str]]:
    return [(re.sub(r"\s+", " ", found[1]), found[2], found[3]) for found in re.finditer(_ENTRY, text + "\n")]


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error:
        raise ValueError("an entry of it is not base64") from None
