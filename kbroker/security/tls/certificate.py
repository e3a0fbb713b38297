"""What the broker reads of a certificate: the subject's distinguished name, and the alternative names.

A distinguished name is written as Java does (X500Principal.getName, RFC 2253): it is the name of Kafka's
principals, so that every escape counts.
"""

from __future__ import annotations

from typing import NamedTuple

from kbroker.security.tls.der import OBJECT_IDENTIFIER, SEQUENCE, Malformed, Value, first, object_identifier

# The types that RFC 2253 has names for. Java writes all others, e-mail addresses too, as numbers.
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)  # UTF8, Printable, T61, IA5, General, BMP: all read as UTF-8
_ESCAPED = ',=+<>#;"\\'
_BLANKS = " \r"
_ALTERNATIVE_NAMES = "2.5.29.17"
_EXTENSIONS = 0xA3
_VERSION = 0xA0


class Identity(NamedTuple):
    distinguished_name: str
    alternative_names: frozenset[bytes]
    """As they are encoded: they are only compared."""


def identity(certificate: bytes) -> Identity:
    """Of a certificate in DER. Raises Malformed."""
    fields = list(first(certificate).child(0, SEQUENCE))
    if fields and fields[0].tag == _VERSION:
        del fields[0]
    # serial number, signature, issuer, validity, subject, …
    if len(fields) < 5 or fields[4].tag != SEQUENCE:
        raise Malformed("a certificate without a subject")
    names: frozenset[bytes] = frozenset()
    for field in fields[5:]:
        if field.tag == _EXTENSIONS:
            names = _alternative_names(first(field.content))
    return Identity(_distinguished_name(fields[4]), names)


def _alternative_names(extensions: Value) -> frozenset[bytes]:
    for extension in extensions:
        parts = list(extension)
        if object_identifier(parts[0].content) == _ALTERNATIVE_NAMES:
            return frozenset(name.encoded for name in first(parts[-1].content))
    return frozenset()


def _distinguished_name(name: Value) -> str:
    """The last part comes first."""
    relative = ["+".join(_type_and_value(each) for each in part) for part in name]
    return ",".join(reversed(relative))


def _type_and_value(pair: Value) -> str:
    kind, value = list(pair)[:2]
    if kind.tag != OBJECT_IDENTIFIER:
        raise Malformed("a name without a type")
    number = object_identifier(kind.content)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXTS:
        return f"{keyword or number}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    text = "".join(f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each for each in text)
    begin = len(text) - len(text.lstrip(_BLANKS))
    end = len(text.rstrip(_BLANKS))
    if begin >= end:
        return "".join(f"\\{each}" for each in text)
    before, after = text[:begin], text[end:]
    return "".join(f"\\{each}" for each in before) + text[begin:end] + "".join(f"\\{each}" for each in after)
