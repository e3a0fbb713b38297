"""Writes the source of an encoder: straight-line Python for one message at one version.

`encode(o, w)` appends to the bytearray `w` and returns the list of parts that make up the message. Adjacent
fixed-width fields, the length or count that follows them included, are one `pack`. RECORDS end the current
part and become parts of their own, so that record bytes are never copied.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, pack
from typing import Any, Final

from kbroker.protocol import wire
from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.source import Source
from kbroker.protocol.types import (
    INT32,
    RECORDS,
    STRING,
    UUID,
    Array,
    FieldType,
    FixedType,
    LengthType,
)

_RUNTIME: dict[str, Any] = {
    "pack": pack,
    "uvarint": wire.uvarint,
    "compact_string_length": wire.compact_string_length,
    "records_parts": wire.records_parts,
    "null_error": wire.null_error,
    "absent_error": wire.absent_error,
}

NO_TAGGED_FIELDS: Final = ("0", "x")


def make_encoder(cls: type[Any], version: int, *, in_steps: bool = False) -> Callable[[Any, bytearray], Any]:
    return EncoderSource(cls, version, in_steps=in_steps).compiled("encode")


class EncoderSource(Source):
    _arguments = "{}, w, parts"
    _result = "w"
    _pause = "len(w)"
    _elements_per_step = 8  # each may be large

    def __init__(self, cls: type[Any], version: int, *, in_steps: bool = False) -> None:
        super().__init__(cls, version, _RUNTIME, in_steps=in_steps)
        self._run: list[tuple[str, str]] = []  # fixed-width values not written yet: expression, format
        self._line("def encode(o, w):")
        self._indent = 1
        self._line("parts = []")
        self._begin_steps()
        self._fields("o", cls)
        self._flush()
        self._line("if w: parts.append(w)")
        self._line("return parts")

    def _packed(self, run: list[tuple[str, str]]) -> str:
        """The expression for the bytes of these values."""
        packer = self._constant("pack", Struct(">" + "".join(format for _, format in run)).pack)
        return f"{packer}({', '.join(expression for expression, format in run if format != 'x')})"

    def _flush(self) -> None:
        run, self._run = self._run, []
        if run == [NO_TAGGED_FIELDS]:
            self._line("w.append(0)")
        elif run:
            self._line(f"w += {self._packed(run)}")

    def _uvarint(self, n: str, longer: str = "uvarint") -> None:
        """Write variable `n` as a varint, as one with the pending values where one byte suffices."""
        run, self._run = self._run, []
        short = f"w += {self._packed([*run, (n, 'B')])}" if run else f"w.append({n})"
        self._line(f"if {n} < 128: {short}")
        before = f"w += {self._packed(run)}; " if run else ""
        self._line(f"else: {before}w += {longer}({n})")

    def _start(self, target: str, cls: type[Any]) -> None:
        for f in schema_of(cls):
            if not f.present(self.version) and not f.ignorable:
                self._line(f"if {self._is_set(f'{target}.{f.name}', f)}: raise absent_error({f.name!r})")

    def _is_set(self, expression: str, f: Field) -> str:
        """The condition that a field does not hold its default."""
        default = f.default_value()
        if default is None:
            return f"{expression} is not None"
        if isinstance(f.type, type):
            name = self._constant("D", default)
            return f"{expression} is not {name} and {expression} != {name}"
        if isinstance(default, int | float | str) and not isinstance(default, bool) and default:
            return f"{expression} != {default!r}"
        if default is True:
            return f"not {expression}"
        if isinstance(f.type, FixedType) and f.type is not UUID:
            return expression
        return f"{expression} != {self._constant('D', default)}"

    def _value(
        self,
        target: str,
        name: str,
        type: FieldType,
        flexible: bool,
        nullable: bool,
        *,
        null_struct: bytes = b"\xff",
    ) -> None:
        if isinstance(type, FixedType):
            self._run.append((target, type.format))
        elif type is RECORDS:
            self._records(target, name, flexible, nullable)
        elif isinstance(type, LengthType):
            self._bytes(target, type, flexible, nullable)
        elif isinstance(type, Array):
            self._array(target, name, type.of, flexible, nullable)
        else:
            inner = self._variable("o")
            self._line(f"{inner} = {target}")
            if nullable:
                self._flush()
                self._line(f"if {inner} is None: w += {null_struct!r}")
                self._line("else:")
                self._indent += 1
                self._run.append(("1", "b"))
            self._struct(inner, type)
            if nullable:
                self._flush()
                self._indent -= 1

    def _null(self, prefix: FixedType, flexible: bool) -> bytes:
        return b"\0" if flexible else b"\xff" * prefix.size

    def _start_nullable(self, variable: str, prefix: FixedType, flexible: bool) -> None:
        self._flush()
        self._line(f"if {variable} is None: w += {self._null(prefix, flexible)!r}")
        self._line("else:")
        self._indent += 1

    def _length(
        self, n: str, expression: str, prefix: FixedType, flexible: bool, longer: str = "uvarint"
    ) -> None:
        """Write a length or count. Leaves it pending where its width is fixed."""
        if flexible:
            self._line(f"{n} = {expression} + 1")
            self._uvarint(n, longer)
        else:
            self._run.append((expression, prefix.format))

    def _bytes(self, expression: str, type: LengthType, flexible: bool, nullable: bool) -> None:
        data = self._variable("b")
        if nullable:
            self._line(f"{data} = {expression}")
            self._start_nullable(data, type.prefix, flexible)
            expression = data
        if type is STRING:
            self._line(f"{data} = {expression}.encode()")
            longer = "compact_string_length"
        else:
            if not nullable:
                self._line(f"{data} = {expression}")
            longer = "uvarint"
        self._length(self._variable("n"), f"len({data})", type.prefix, flexible, longer)
        self._flush()
        self._line(f"w += {data}")
        self._indent -= nullable

    def _records(self, expression: str, name: str, flexible: bool, nullable: bool) -> None:
        data = self._variable("r")
        self._line(f"{data} = {expression}")
        if nullable:
            self._start_nullable(data, RECORDS.prefix, flexible)
        else:
            self._line(f"if {data} is None: raise null_error({name!r})")
        n = self._variable("n")
        self._line(f"{n}, {data} = records_parts({data})")
        self._length(n, n, RECORDS.prefix, flexible)
        self._flush()
        self._line(f"if {data}: parts.append(w); parts += {data}; w = bytearray()")
        self._indent -= nullable

    def _array(self, expression: str, name: str, of: FieldType, flexible: bool, nullable: bool) -> None:
        items = self._variable("a")
        self._line(f"{items} = {expression}")
        if nullable:
            self._start_nullable(items, INT32, flexible)
        self._length(self._variable("n"), f"len({items})", INT32, flexible)
        self._flush()
        if of is UUID:
            self._line(f"for u in {items}: w += pack('16s', u)")
        elif isinstance(of, FixedType):
            self._line(f"w += pack('>%d{of.format}' % len({items}), *{items})")
        else:
            item = self._variable("o")
            self._line(f"for {item} in {items}:")
            self._indent += 1
            self._step()
            if isinstance(of, type):
                self._struct(item, of)
            else:
                self._value(item, name, of, flexible, False)
            self._flush()
            self._indent -= 1
        self._indent -= nullable

    def _tagged_fields(self, target: str, fields: list[Field]) -> None:
        if not fields:
            self._run.append(NO_TAGGED_FIELDS)
            return
        by_tag = sorted(fields, key=lambda f: f.tag or 0)
        conditions = [f"({self._is_set(f'{target}.{f.name}', f)})" for f in by_tag]
        pending = list(self._run)
        self._line(f"if not ({' or '.join(conditions)}):")
        self._indent += 1
        self._run.append(NO_TAGGED_FIELDS)
        self._flush()
        self._indent -= 1
        self._line("else:")
        self._indent += 1
        self._run = [*pending, (" + ".join(f"bool{condition}" for condition in conditions), "B")]
        self._flush()
        outer = self._variable("w")
        for f, condition in zip(by_tag, conditions, strict=True):
            self._line(f"if {condition}:")
            self._indent += 1
            self._line(f"{outer} = w; w = bytearray()")
            nullable = f.nullable(self.version)
            self._value(f"{target}.{f.name}", f.name, f.type, True, nullable, null_struct=b"\0")
            self._flush()
            self._line(
                f"{outer} += {wire.uvarint(f.tag or 0)!r} + uvarint(len(w)); {outer} += w; w = {outer}"
            )
            self._indent -= 1
        self._indent -= 1
