r"""How `consume` writes a record: kcat's format strings, or JSON that `produce --from-json` takes back.

%s value   %S its length (-1: null)   %R its length as 4 bytes, big endian
%k key     %K its length (-1: null)
%h headers name=value,…   %T timestamp in ms   %t topic   %p partition   %o offset   %% a percent sign
\n \r \t \\ \0 \xNN
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from typing import Any

from kbroker.exit_codes import CommandFailed

_TOKEN = re.compile(rb"%(.)|\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"\\": b"\\", b"0": b"\0"}

Part = Callable[[Any], bytes]


def _length(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def _headers(record: Any) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers
    )


_FIELDS: dict[bytes, Part] = {
    b"s": lambda record: record.value or b"",
    b"S": lambda record: _length(record.value),
    b"R": lambda record: struct.pack(">i", -1 if record.value is None else len(record.value)),
    b"k": lambda record: record.key or b"",
    b"K": lambda record: _length(record.key),
    b"h": _headers,
    b"T": lambda record: b"%d" % record.timestamp,
    b"t": lambda record: record.topic.encode(),
    b"p": lambda record: b"%d" % record.partition,
    b"o": lambda record: b"%d" % record.offset,
}


def compile_format(text: str) -> Callable[[Any], bytes]:
    """The function that writes a record (of kafka-python's) as the format says."""
    source = text.encode()
    parts: list[Part] = []
    position = 0

    def literal(data: bytes) -> None:
        if data:
            parts.append(lambda _: data)

    for match in _TOKEN.finditer(source):
        literal(source[position : match.start()])
        position = match.end()
        letter, number, escape = match.groups()
        if letter == b"%":
            literal(b"%")
        elif letter is not None:
            if letter not in _FIELDS:
                raise CommandFailed(
                    f"%{letter.decode()} is no field of a format: see 'kbroker consume --help'"
                )
            parts.append(_FIELDS[letter])
        elif number is not None:
            literal(bytes.fromhex(number.decode()))
        elif escape in _ESCAPES:
            literal(_ESCAPES[escape])
        else:
            raise CommandFailed(f"\\{escape.decode()} is no escape of a format: see 'kbroker consume --help'")
    literal(source[position:])
    return lambda record: b"".join([part(record) for part in parts])


def as_json(record: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(fields(record), ensure_ascii=False).encode() + b"\n"


def fields(record: Any) -> dict[str, Any]:
    """What JSON shows of a record."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
    }


def _text(data: bytes | None) -> Any:
    """Text where it is text, else {"base64": …}."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def from_text(value: Any) -> bytes | None:
    """What ``as_json`` made of bytes, as bytes again; other JSON is written as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (ValueError, TypeError) as error:
            raise ValueError(f"not base64: {error}") from error
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
