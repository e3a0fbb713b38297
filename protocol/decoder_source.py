"""Writes the source of a decoder: straight-line Python for one message at one version.

The rules that make it fast and safe:
- Adjacent fixed-width fields, the length or count that follows them included, are one `unpack_from` straight
  into the object's slots. A varint's first byte counts as fixed; only a byte above 127 takes a call.
- Reading past the end fails by itself (struct.error, IndexError). Slices do not: a length beyond the frame
  gives a short slice and a position past the end, so the next read or the check at the end fails.
- A count is checked against the bytes that remain before anything is allocated for it.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, iter_unpack, unpack_from
from typing import Any

from kbroker.protocol import wire
from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.source import Source
from kbroker.protocol.types import (
    BYTES,
    INT32,
    RECORDS,
    STRING,
    UUID,
    Array,
    FieldType,
    FixedType,
    LengthType,
    ProtocolError,
)

_RUNTIME: dict[str, Any] = {
    "new": object.__new__,
    "finish_uvarint": wire.finish_uvarint,
    "finish_string_length": wire.finish_string_length,
    "skip_tagged_fields": wire.skip_tagged_fields,
    "null_error": wire.null_error,
    "count_error": wire.count_error,
    "tag_error": wire.tag_error,
    "iter_unpack": iter_unpack,
    "unpack_from": unpack_from,
    "ProtocolError": ProtocolError,
}


def smallest_size(type: FieldType, version: int, flexible: bool, nullable: bool = False) -> int:
    """The fewest bytes a value of this type takes: bounds how many of them can be left in a frame."""
    if isinstance(type, FixedType):
        return type.size
    if isinstance(type, LengthType):
        return 1 if flexible else type.prefix.size
    if isinstance(type, Array):
        return 1 if flexible else 4
    if nullable:
        return 1
    return int(flexible) + sum(
        smallest_size(f.type, version, flexible and f.flexible, f.nullable(version))
        for f in schema_of(type)
        if f.present(version) and f.tag is None
    )


def make_decoder(cls: type[Any], version: int, *, in_steps: bool = False) -> Callable[[memoryview, int], Any]:
    return DecoderSource(cls, version, in_steps=in_steps).compiled("decode")


class DecoderSource(Source):
    _arguments = "buf, p, limit"
    _result = "{}, p"
    _pause = "None"
    _elements_per_step = 64

    def __init__(self, cls: type[Any], version: int, *, in_steps: bool = False) -> None:
        super().__init__(cls, version, _RUNTIME, in_steps=in_steps)
        self._run: list[tuple[str, str, int]] = []  # fixed-width reads not written yet: target, format, size
        self._line("def decode(buf, p):")
        self._indent = 1
        self._line("limit = len(buf)")
        self._begin_steps()
        self._fields("o", cls)
        self._flush()
        self._line("if p > limit: raise ProtocolError('the frame ends inside the message')")
        self._line("return o, p")

    def _read(self, target: str, type: FixedType) -> None:
        self._run.append((target, type.format, type.size))

    def _flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        size = sum(item[2] for item in run)
        if len(run) == 1 and run[0][1] == "B":
            self._line(f"{run[0][0]} = buf[p]")
        else:
            unpack = self._constant("unpack", Struct(">" + "".join(item[1] for item in run)).unpack_from)
            targets = ", ".join(item[0] for item in run)
            self._line(f"{targets}{',' if len(run) == 1 else ''} = {unpack}(buf, p)")
        self._line(f"p += {size}")

    def _start(self, target: str, cls: type[Any]) -> None:
        self._line(f"{target} = new({self._constant('C', cls)})")
        for f in schema_of(cls):
            if not f.present(self.version) or f.tag is not None:
                self._set_default(target, f)

    def _set_default(self, target: str, f: Field) -> None:
        if isinstance(f.type, Array) and not f.shares_default:
            self._line(f"{target}.{f.name} = []")
            return
        default = f.default_value() if f.shares_default else f.default_value
        if default is None or type(default) in (int, bool, str):
            text = repr(default)
        else:
            text = self._constant("D", default) + ("" if f.shares_default else "()")
        self._line(f"{target}.{f.name} = {text}")

    def _value(
        self,
        target: str,
        name: str,
        type: FieldType,
        flexible: bool,
        nullable: bool,
        *,
        null_struct: str = "< 0",
    ) -> None:
        if isinstance(type, FixedType):
            self._read(target, type)
        elif isinstance(type, LengthType):
            self._bytes(target, name, type, flexible, nullable)
        elif isinstance(type, Array):
            self._array(target, name, type.of, flexible, nullable)
        elif nullable:
            self._nullable_struct(target, type, null_struct)
        else:
            inner = self._variable("o")
            self._struct(inner, type)
            self._line(f"{target} = {inner}")

    def _length(self, prefix: FixedType, flexible: bool, finish: str) -> str:
        """Read a length or count into a variable. It holds 0 (flexible) or a negative number for null."""
        n = self._variable("n")
        if not flexible:
            self._read(n, prefix)
            self._flush()
            return n
        self._run.append((n, "B", 1))
        self._flush()
        self._line(f"if {n} > 127: {n}, p = {finish}(buf, p, {n})")
        return n

    def _bytes(self, target: str, name: str, type: LengthType, flexible: bool, nullable: bool) -> None:
        finish = "finish_string_length" if type is STRING else "finish_uvarint"
        n = self._length(type.prefix, flexible, finish)
        present = n if flexible else f"{n} >= 0"
        if nullable:
            self._line(f"if {present}:")
        else:
            absent = f"not {n}" if flexible else f"{n} < 0"
            self._line(f"if {absent}: raise null_error({name!r})")
        self._indent += nullable
        self._line(f"e = p + {n} - 1" if flexible else f"e = p + {n}")
        if type is STRING:
            self._line(f"{target} = str(buf[p:e], 'utf-8')")
        elif type is BYTES:
            self._line(f"{target} = bytes(buf[p:e])")
        else:
            assert type is RECORDS
            self._line(f"{target} = buf[p:e]")
        self._line("p = e")
        self._indent -= nullable
        if nullable:
            self._line(f"else: {target} = None")

    def _array(self, target: str, name: str, of: FieldType, flexible: bool, nullable: bool) -> None:
        n = self._length(INT32, flexible, "finish_uvarint")
        absent = f"not {n}" if flexible else f"{n} < 0"
        if nullable:
            self._line(f"if {absent}: {target} = None")
            self._line("else:")
        else:
            self._line(f"if {absent}: raise null_error({name!r})")
        self._indent += nullable
        if flexible:
            self._line(f"{n} -= 1")
        smallest = max(1, smallest_size(of, self.version, self.flexible))
        self._line(f"if {n} * {smallest} > limit - p: raise count_error({name!r}, {n})")
        if isinstance(of, FixedType):
            if of is UUID:
                self._line(f"{target} = [x for x, in iter_unpack('16s', buf[p:p + {n} * 16])]")
            else:
                self._line(f"{target} = list(unpack_from('>%d{of.format}' % {n}, buf, p))")
            self._line(f"p += {n} * {of.size}")
        else:
            self._elements(target, name, of, n, flexible)
        self._indent -= nullable

    def _elements(self, target: str, name: str, of: FieldType, n: str, flexible: bool) -> None:
        items, item = self._variable("a"), self._variable("o")
        self._line(f"{items} = {target} = []")
        self._line(f"for _ in range({n}):")
        self._indent += 1
        self._step()
        if isinstance(of, type):
            self._struct(item, of)
        else:
            self._value(item, name, of, flexible, False)
        self._flush()
        self._line(f"{items}.append({item})")
        self._indent -= 1

    def _nullable_struct(self, target: str, cls: type[Any], null: str) -> None:
        marker, inner = self._variable("n"), self._variable("o")
        self._run.append((marker, "b", 1))
        self._flush()
        self._line(f"if {marker} {null}: {target} = None")
        self._line("else:")
        self._indent += 1
        self._struct(inner, cls)
        self._flush()
        self._line(f"{target} = {inner}")
        self._indent -= 1

    def _tagged_fields(self, target: str, fields: list[Field]) -> None:
        count = self._variable("t")
        self._run.append((count, "B", 1))
        self._flush()
        if not fields:
            self._line(f"if {count}: p = skip_tagged_fields(buf, p, {count}, limit)")
            return
        self._line(f"if {count}:")
        self._indent += 1
        self._line(f"if {count} > 127: {count}, p = finish_uvarint(buf, p, {count})")
        self._line(f"for _ in range({count}):")
        self._indent += 1
        tag, end = self._variable("g"), self._variable("e")
        for variable in (tag, end):
            self._line(f"{variable} = buf[p]; p += 1")
            self._line(f"if {variable} > 127: {variable}, p = finish_uvarint(buf, p, {variable})")
        self._line(f"{end} += p")
        self._line(f"if {end} > limit: raise ProtocolError('a tagged field ends beyond the frame')")
        for f in fields:
            self._line(f"if {tag} == {f.tag}:")
            self._indent += 1
            nullable = f.nullable(self.version)
            self._value(f"{target}.{f.name}", f.name, f.type, True, nullable, null_struct="<= 0")
            self._flush()
            self._line(f"if p != {end}: raise tag_error({f.name!r})")
            self._line("continue")
            self._indent -= 1
        self._line(f"p = {end}")
        self._indent -= 2
