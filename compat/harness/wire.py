"""A Kafka codec for plain dictionaries, driven by the message definitions inside Kafka's own jar.

It shares no code with kbroker, so a mistake in kbroker's messages cannot hide itself here. Field names are
the definitions' own ("TopicId"); a field left out of a request has its default; UUIDs are 16 bytes.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from . import jars

CLIENTS_VERSION = "4.3.1"
LAST_VERSION = 32767
FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
}
ZERO_UUID = bytes(16)


@dataclass(frozen=True, slots=True)
class Versions:
    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        if not text or text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), LAST_VERSION)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: Any
    fields: tuple[Field, ...] = ()

    @property
    def element(self) -> Field:
        """The field of one element of this array; never null."""
        never = Versions(1, 0)
        return Field(self.name, self.type[2:], self.versions, never, never, None, None, self.fields)


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    api_key: int
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]


@dataclass(slots=True)
class Api:
    name: str
    key: int
    request: Message = field(init=False)
    response: Message = field(init=False)


@cache
def apis(clients_version: str = CLIENTS_VERSION) -> dict[str, Api]:
    """API name ("Produce") -> its two messages."""
    found: dict[str, Api] = {}
    with zipfile.ZipFile(jars.jar("kafka-clients", clients_version)) as archive:
        for name in archive.namelist():
            if not re.fullmatch(r"common/message/\w+(Request|Response)\.json", name):
                continue
            definition = _load(archive.read(name).decode())
            api_name = re.sub(r"(Request|Response)$", "", definition["name"])
            api = found.setdefault(api_name, Api(api_name, definition["apiKey"]))
            setattr(api, definition["type"], _message(definition))
    return found


def encode(message: Message, version: int, values: dict[str, Any]) -> bytes:
    return _encode_struct(message.fields, version, version in message.flexible, values, message.name)


def supported(message: Message, version: int, values: dict[str, Any]) -> dict[str, Any]:
    """`values` without the fields that this version does not have."""
    return _supported(message.fields, version, values)


def decode(message: Message, version: int, body: bytes) -> dict[str, Any]:
    reader = Reader(body)
    values = _decode_struct(message.fields, version, version in message.flexible, reader)
    if reader.remaining:
        raise ValueError(f"{message.name} v{version}: {reader.remaining} bytes too many after {values}")
    return values


def unsigned_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class Reader:
    """Reads forward through a message; reading past the end raises."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    @property
    def remaining(self) -> int:
        return len(self._content) - self._position

    def take(self, size: int) -> bytes:
        if size < 0 or size > self.remaining:
            raise ValueError(f"{size} bytes wanted at {self._position}, {self.remaining} are left")
        self._position += size
        return self._content[self._position - size : self._position]

    def fixed(self, code: str) -> Any:
        return struct.unpack(">" + code, self.take(struct.calcsize(">" + code)))[0]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def _supported(fields: tuple[Field, ...], version: int, values: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for each in fields:
        if each.name not in values or version not in each.versions:
            continue
        value = values[each.name]
        if isinstance(value, dict):
            value = _supported(each.fields, version, value)
        elif each.fields and value is not None:
            value = [_supported(each.fields, version, item) for item in value]
        kept[each.name] = value
    return kept


def _load(text: str) -> dict[str, Any]:
    definition: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$|\s//.*$", "", text, flags=re.MULTILINE))
    return definition


def _message(definition: dict[str, Any]) -> Message:
    common = {each["name"]: each for each in definition.get("commonStructs", ())}
    return Message(
        definition["name"],
        definition["apiKey"],
        _stable(definition),
        Versions.parse(definition.get("flexibleVersions")),
        tuple(_field(each, common) for each in definition.get("fields", ())),
    )


def _stable(definition: dict[str, Any]) -> Versions:
    """The versions that a broker offers: not the newest one while it is still being worked on."""
    valid = Versions.parse(definition["validVersions"])
    return Versions(valid.first, valid.last - 1) if definition.get("latestVersionUnstable") else valid


def _field(definition: dict[str, Any], common: dict[str, Any]) -> Field:
    kind = definition["type"]
    nested = definition.get("fields") or common.get(kind.removeprefix("[]"), {}).get("fields", ())
    return Field(
        definition["name"],
        kind,
        Versions.parse(definition["versions"]),
        Versions.parse(definition.get("nullableVersions")),
        Versions.parse(definition.get("taggedVersions")),
        definition.get("tag"),
        _default(kind, definition.get("default")),
        tuple(_field(each, common) for each in nested),
    )


def _default(kind: str, text: Any) -> Any:
    if text == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind in {"string", "bytes", "records", "uuid"}:
        return {"string": text or "", "bytes": b"", "records": None, "uuid": ZERO_UUID}[kind]
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "float64":
        return float(text or 0)
    if kind in FIXED:
        return int(str(text or 0), 0)
    return {}


def _encode_struct(
    fields: tuple[Field, ...], version: int, flexible: bool, values: dict[str, Any], where: str
) -> bytes:
    if unknown := values.keys() - {each.name for each in fields if version in each.versions}:
        raise ValueError(f"{where} v{version} has no field {', '.join(sorted(unknown))}")
    parts: list[bytes] = []
    tagged: dict[int, bytes] = {}
    for each in fields:
        if version not in each.versions:
            continue
        value = values.get(each.name, each.default)
        if version not in each.tagged:
            parts.append(_encode(each, version, flexible, value))
        elif each.name in values and value != each.default:
            assert each.tag is not None
            tagged[each.tag] = _encode(each, version, flexible, value)
    if flexible:
        parts.append(unsigned_varint(len(tagged)))
        for tag in sorted(tagged):
            parts += [unsigned_varint(tag), unsigned_varint(len(tagged[tag])), tagged[tag]]
    return b"".join(parts)


def _encode(each: Field, version: int, flexible: bool, value: Any) -> bytes:
    if each.type in FIXED:
        return struct.pack(">" + FIXED[each.type], value)
    if each.type == "uuid":
        return bytes(value)
    if each.type.startswith("[]"):
        if value is None:
            return _length(None, flexible, "i")
        element = each.element
        items = [_encode(element, version, flexible, item) for item in value]
        return _length(len(items), flexible, "i") + b"".join(items)
    if each.type in {"string", "bytes", "records"}:
        code = "h" if each.type == "string" else "i"
        if value is None:
            return _length(None, flexible, code)
        content = value.encode() if isinstance(value, str) else bytes(value)
        return _length(len(content), flexible, code) + content
    if version in each.nullable:
        if value is None:
            return b"\xff"
        return b"\x01" + _encode_struct(each.fields, version, flexible, value, each.name)
    return _encode_struct(each.fields, version, flexible, value, each.name)


def _length(length: int | None, flexible: bool, code: str) -> bytes:
    if flexible:
        return unsigned_varint(0 if length is None else length + 1)
    return struct.pack(">" + code, -1 if length is None else length)


def _decode_struct(fields: tuple[Field, ...], version: int, flexible: bool, reader: Reader) -> dict[str, Any]:
    values: dict[str, Any] = {}
    tagged: dict[int | None, Field] = {}
    for each in fields:
        if version not in each.versions:
            continue
        if version in each.tagged:
            tagged[each.tag] = each
            values[each.name] = each.default
        else:
            values[each.name] = _decode(each, version, flexible, reader)
    if flexible:
        for _ in range(reader.varint()):
            tag = reader.varint()
            inner = Reader(reader.take(reader.varint()))
            if tag in tagged:
                values[tagged[tag].name] = _decode(tagged[tag], version, flexible, inner)
    return values


def _decode(each: Field, version: int, flexible: bool, reader: Reader) -> Any:
    if each.type in FIXED:
        return reader.fixed(FIXED[each.type])
    if each.type == "uuid":
        return reader.take(16)
    if each.type.startswith("[]"):
        count = _read_length(reader, flexible, "i")
        element = each.element
        return None if count is None else [_decode(element, version, flexible, reader) for _ in range(count)]
    if each.type in {"string", "bytes", "records"}:
        size = _read_length(reader, flexible, "h" if each.type == "string" else "i")
        if size is None:
            return None
        content = reader.take(size)
        return content.decode() if each.type == "string" else content
    if version in each.nullable and reader.fixed("b") < 0:
        return None
    return _decode_struct(each.fields, version, flexible, reader)


def _read_length(reader: Reader, flexible: bool, code: str) -> int | None:
    length = reader.varint() - 1 if flexible else int(reader.fixed(code))
    return None if length < 0 else length
