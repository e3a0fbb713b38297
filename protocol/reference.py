"""The reference codec: a construct.Struct per (message, version), made from the same declaration.

It is the definition that the compiled codec is tested against, and readable as one: each wire rule is one
construct below. It is some fifty times slower, and loading construct takes 40 ms, so the server never
imports it; `kbroker wire` explains frames with it. RECORDS are plain bytes here.

A parse that is given a `trace` tells it where each field begins and ends (`struct_for(…).parse_stream(stream,
trace=…)`): what was read before a frame turns out to be broken, and where that is.
"""

# construct has no annotations:
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import io
from typing import Any, Protocol, TypeVar

import construct as c

from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.types import STRING, UUID, Array, FieldType, FixedType, LengthType, ProtocolError

M = TypeVar("M")

VARINT: Any = c.VarInt
TAGGED = "tagged_fields"  # where a struct keeps its tagged fields: a dict of those that are set


class Trace(Protocol):
    """What follows a parse. Fields that it has entered and not left are those in which the parse failed."""

    def enter(self, name: str | int, field: Field | None, position: int) -> None:
        """A field, an element (its index) or an unknown tagged field begins."""

    def content(self, length: int, position: int) -> None:
        """The length of the field entered last is read; its bytes begin here."""

    def leave(self, value: Any, position: int) -> None:
        """The field entered last ends here."""

    def forget(self) -> None:
        """What was entered last was no field, only what stands between fields, and is read."""


def _trace(context: Any) -> Trace | None:
    found: Trace | None = context._params.get("trace")
    return found


class UVarInt(c.Construct):
    """An unsigned varint of at most 32 bits in at most five bytes."""

    def _parse(self, stream: Any, context: Any, path: Any) -> int:
        value: int = 0
        for shift in range(0, 35, 7):
            byte: int = c.stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80 and value <= 0xFFFFFFFF:
                return value
        raise c.IntegerError("a varint of more than 32 bits", path=path)

    def _build(self, obj: int, stream: Any, context: Any, path: Any) -> int:
        VARINT.build_stream(obj, stream)
        return obj


class Nullable(c.Subconstruct):
    """A value whose length or count, `-1` for null, comes first: LengthPrefixed or Elements as `subcon`."""

    def __init__(self, length: Any, subcon: Any) -> None:
        super().__init__(subcon)
        self.length = length

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        start = stream.tell()
        if self.length._parsereport(stream, context, path) < 0:
            return None
        stream.seek(start)
        return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return (self.length if obj is None else self.subcon)._build(
            -1 if obj is None else obj, stream, context, path
        )


class NullableStruct(c.Subconstruct):
    """A struct behind one byte: negative for null."""

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        if c.Int8sb._parsereport(stream, context, path) < 0:
            return None
        return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        c.Int8sb._build(-1 if obj is None else 1, stream, context, path)
        return obj if obj is None else self.subcon._build(obj, stream, context, path)


class TaggedNullableStruct(NullableStruct):
    """The same in a tagged field: 0 for null."""

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        if c.Int8sb._parsereport(stream, context, path) <= 0:
            return None
        return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        c.Int8sb._build(0 if obj is None else 1, stream, context, path)
        return obj if obj is None else self.subcon._build(obj, stream, context, path)


class DeclaredField(c.Renamed):
    """A named member of a struct, which knows its declaration."""

    def __init__(self, subcon: Any, field: Field) -> None:
        super().__init__(subcon, newname=field.name)
        self.field = field

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        trace = _trace(context)
        if trace is None:
            return super()._parse(stream, context, path)
        trace.enter(self.field.name, self.field, stream.tell())
        value = super()._parse(stream, context, path)
        trace.leave(value, stream.tell())
        return value


class LengthPrefixed(c.Prefixed):
    """Bytes or text behind their length."""

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        length = self.lengthfield._parsereport(stream, context, path)
        if trace := _trace(context):
            trace.content(length, stream.tell())
        content = c.BytesIOWithOffsets.from_reading(stream, length, path)
        return self.subcon._parsereport(content, context, path)


class Elements(c.Subconstruct):
    """Values of one type behind their count."""

    def __init__(self, count: Any, subcon: Any) -> None:
        super().__init__(subcon)
        self.count = count

    def _parse(self, stream: Any, context: Any, path: Any) -> list[Any]:
        count = self.count._parsereport(stream, context, path)
        if count < 0:
            raise c.RangeError(f"a list of {count} elements", path=path)
        trace = _trace(context)
        values = []
        for index in range(count):
            if trace is not None:
                trace.enter(index, None, stream.tell())
            values.append(self.subcon._parsereport(stream, context, f"{path}[{index}]"))
            if trace is not None:
                trace.leave(values[-1], stream.tell())
        return values

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        self.count._build(len(obj), stream, context, path)
        for index, value in enumerate(obj):
            self.subcon._build(value, stream, context, f"{path}[{index}]")
        return obj


class TaggedFields(c.Construct):
    """The end of a flexible struct: a count, then tag, size and value of each. Unknown tags are skipped."""

    def __init__(self, known: dict[int, tuple[str, Any]]) -> None:
        super().__init__()
        self.known = known

    def _parse(self, stream: Any, context: Any, path: Any) -> dict[str, Any]:
        trace = _trace(context)
        values = {}
        if trace is not None:
            trace.enter(TAGGED, None, stream.tell())
        for _ in range(UVARINT._parsereport(stream, context, path)):
            tag = UVARINT._parsereport(stream, context, path)
            size = UVARINT._parsereport(stream, context, path)
            data = c.BytesIOWithOffsets.from_reading(stream, size, path)
            if trace is not None:
                trace.forget()
            if tag in self.known:
                name, subcon = self.known[tag]
                values[name] = subcon._parsereport(data, context, path)
                if data.tell() != stream.tell():
                    raise c.StreamError("a tagged field does not fill its size", path=path)
            elif trace is not None:
                trace.enter(f"unknown_tag_{tag}", None, data.tell())
                trace.leave(data.getvalue(), stream.tell())
            if trace is not None:
                trace.enter(TAGGED, None, stream.tell())
        if trace is not None:
            trace.forget()
        return values

    def _build(self, obj: dict[str, Any], stream: Any, context: Any, path: Any) -> dict[str, Any]:
        present = [(tag, name, subcon) for tag, (name, subcon) in sorted(self.known.items()) if name in obj]
        UVARINT._build(len(present), stream, context, path)
        for tag, name, subcon in present:
            UVARINT._build(tag, stream, context, path)
            c.Prefixed(UVARINT, subcon)._build(obj[name], stream, context, path)
        return obj


UVARINT = UVarInt()
COMPACT_LENGTH = c.ExprAdapter(UVARINT, lambda n, _: n - 1, lambda n, _: n + 1)
COMPACT_STRING_LENGTH = c.ExprValidator(COMPACT_LENGTH, lambda n, _: n <= 0x7FFF)

_structs: dict[tuple[type[Any], int], Any] = {}


def struct_for(cls: type[Any], version: int) -> Any:
    """The construct.Struct of a message at a version."""
    found = _structs.get((cls, version))
    if found is None:
        schema = schema_of(cls)
        schema.check_version(version)
        found = _structs[cls, version] = _struct(cls, version, schema.is_flexible(version))
    return found


def decode(cls: type[M], version: int, data: bytes, pos: int = 0) -> tuple[M, int]:
    stream = io.BytesIO(data)
    stream.seek(pos)
    try:
        value = struct_for(cls, version).parse_stream(stream)
    except c.ConstructError as error:
        raise ProtocolError(f"{cls.__name__} v{version}: {error}") from error
    return _to_object(cls, version, value), stream.tell()


def encode(message: Any, version: int) -> bytes:
    subcon = struct_for(type(message), version)
    try:
        return bytes(subcon.build(_to_dict(message, version, schema_of(type(message)).is_flexible(version))))
    except (c.ConstructError, UnicodeEncodeError) as error:
        raise ProtocolError(f"{type(message).__name__} v{version}: {error}") from error


def _struct(cls: type[Any], version: int, flexible: bool) -> Any:
    fields = [f for f in schema_of(cls) if f.present(version)]
    members = [
        DeclaredField(_subcon(f.type, version, flexible and f.flexible, f.nullable(version)), f)
        for f in fields
        if f.tag is None
    ]
    if flexible:
        known = {
            f.tag: (
                f.name,
                DeclaredField(_subcon(f.type, version, True, f.nullable(version), tagged=True), f),
            )
            for f in fields
            if f.tag is not None
        }
        members.append(TAGGED / TaggedFields(known))
    return c.Struct(*members)


def _subcon(type: FieldType, version: int, flexible: bool, nullable: bool, *, tagged: bool = False) -> Any:
    if isinstance(type, FixedType):
        return c.Bytes(16) if type is UUID else getattr(c, type.construct_name)
    if isinstance(type, LengthType):
        length = getattr(c, type.prefix.construct_name)
        if flexible:
            length = COMPACT_STRING_LENGTH if type is STRING else COMPACT_LENGTH
        body = c.GreedyString("utf-8") if type is STRING else getattr(c, type.construct_name)
        prefixed = LengthPrefixed(length, body)
        return Nullable(length, prefixed) if nullable else prefixed
    if isinstance(type, Array):
        length = COMPACT_LENGTH if flexible else c.Int32sb
        array = Elements(length, _subcon(type.of, version, flexible, False))
        return Nullable(length, array) if nullable else array
    struct = _struct(type, version, flexible)
    if not nullable:
        return struct
    return TaggedNullableStruct(struct) if tagged else NullableStruct(struct)


def _to_object(cls: type[Any], version: int, value: Any) -> Any:
    tagged = value.get(TAGGED, {})
    arguments = {}
    for f in schema_of(cls):
        if f.present(version) and (f.tag is None or f.name in tagged):
            arguments[f.name] = _from_construct(
                f.type, version, (tagged if f.tag is not None else value)[f.name]
            )
    return cls(**arguments)


def _from_construct(type_: FieldType, version: int, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(type_, Array):
        return [_from_construct(type_.of, version, item) for item in value]
    return _to_object(type_, version, value) if isinstance(type_, type) else value


def _to_dict(message: Any, version: int, flexible: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    tagged: dict[str, Any] = {}
    for f in schema_of(type(message)):
        value = getattr(message, f.name)
        if not f.present(version):
            if not f.ignorable and value != f.default_value():
                raise ProtocolError(f"this version has no field {f.name}, but it is set")
        elif f.tag is None:
            values[f.name] = _to_construct(f, f.type, version, flexible, value)
        elif value != f.default_value():
            tagged[f.name] = _to_construct(f, f.type, version, flexible, value)
    if flexible:
        values[TAGGED] = tagged
    return values


def _to_construct(f: Field, type_: FieldType, version: int, flexible: bool, value: Any) -> Any:
    if value is None:
        if not f.nullable(version):
            raise ProtocolError(f"{f.name} is null")
        return None
    if isinstance(type_, Array):
        return [_to_construct(f, type_.of, version, flexible, item) for item in value]
    if isinstance(type_, type):
        return _to_dict(value, version, flexible)
    if isinstance(type_, LengthType) and type_ is not STRING:
        return b"".join(value) if isinstance(value, list | tuple) else bytes(value)
    return value
