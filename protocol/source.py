"""What the generators of decoders and encoders share: lines, names, the walk through a struct's fields.

A struct is written in line where it stands, because a call per element costs more than reading most elements.
Only a struct that one message uses in several places becomes a function, to keep the generated source short.

Each codec has a twin that works in steps: a generator that pauses after every few elements of its lists, so
that a long message does not keep its caller from all else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.types import Array, FieldType


class Source(ABC):
    """The text of one generated codec, and the objects that its names stand for."""

    _arguments: ClassVar[str]
    """What the function of a shared struct is called with; {} is the struct."""
    _result: ClassVar[str]
    """What it returns."""
    _pause: ClassVar[str]
    """What a codec in steps hands out at a pause."""
    _elements_per_step: ClassVar[int]
    """A power of two."""

    def __init__(self, cls: type[Any], version: int, names: dict[str, Any], *, in_steps: bool) -> None:
        self.cls = cls
        self.version = version
        self.flexible = schema_of(cls).is_flexible(version)
        self.in_steps = in_steps
        self.names = dict(names)
        self._lines: list[str] = []
        self._indent = 0
        self._count = 0
        self._shared = self._structs_used_often()
        self._functions: dict[type[Any], str] = {}

    def compiled(self, function: str) -> Callable[..., Any]:
        """The generated function of that name."""
        code = compile(self.text(), f"<{function} {self.cls.__name__} v{self.version}>", "exec")
        exec(code, self.names)
        found: Callable[..., Any] = self.names[function]
        return found

    def text(self) -> str:
        return "\n".join(self._lines)

    def _line(self, text: str) -> None:
        self._lines.append(" " * self._indent + text)

    def _variable(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _constant(self, prefix: str, value: Any) -> str:
        name = self._variable(prefix)
        self.names[name] = value
        return name

    def _struct(self, target: str, cls: type[Any]) -> None:
        """Read or write the struct in variable `target`. May leave fixed-width values pending."""
        if cls in self._shared:
            self._flush()
            name = self._functions.get(cls) or self._function(cls)
            call = "yield from " if self.in_steps else ""
            self._line(f"{self._result.format(target)} = {call}{name}({self._arguments.format(target)})")
        else:
            self._fields(target, cls)

    def _function(self, cls: type[Any]) -> str:
        """Write the function of a shared struct; returns its name."""
        name = self._functions[cls] = self._variable("f")
        lines, indent = self._lines, self._indent
        self._lines, self._indent = [], 0
        self._line(f"def {name}({self._arguments.format('o')}):")
        self._indent = 1
        self._begin_steps()
        self._fields("o", cls)
        self._flush()
        self._line(f"return {self._result.format('o')}")
        self._lines, self._indent = self._lines + lines, indent
        return name

    def _begin_steps(self) -> None:
        """At the beginning of a function."""
        if self.in_steps:
            self._line("steps = 0")
            self._line(f"if steps: yield {self._pause}")  # whatever follows, this is a generator

    def _step(self) -> None:
        """At each element of a list."""
        if self.in_steps:
            self._line("steps += 1")
            self._line(f"if not steps & {self._elements_per_step - 1}: yield {self._pause}")

    def _fields(self, target: str, cls: type[Any]) -> None:
        fields = schema_of(cls).fields
        self._start(target, cls)
        for f in fields:
            if f.present(self.version) and f.tag is None:
                flexible = self.flexible and f.flexible
                self._value(f"{target}.{f.name}", f.name, f.type, flexible, f.nullable(self.version))
        if self.flexible:
            self._tagged_fields(target, [f for f in fields if f.present(self.version) and f.tag is not None])

    @abstractmethod
    def _start(self, target: str, cls: type[Any]) -> None:
        """What comes before the first field of a struct."""

    @abstractmethod
    def _value(self, target: str, name: str, type: FieldType, flexible: bool, nullable: bool) -> None:
        """Read or write one value."""

    @abstractmethod
    def _tagged_fields(self, target: str, fields: list[Field]) -> None:
        """Read or write the tagged fields of a struct."""

    @abstractmethod
    def _flush(self) -> None:
        """Write the pending fixed-width values as one."""

    def _structs_used_often(self) -> set[type[Any]]:
        uses: Counter[type[Any]] = Counter()

        def count(cls: type[Any]) -> None:
            for f in schema_of(cls):
                used = f.type.of if isinstance(f.type, Array) else f.type
                if isinstance(used, type) and f.present(self.version):
                    uses[used] += 1
                    if uses[used] == 1:
                        count(used)

        count(self.cls)
        return {cls for cls, times in uses.items() if times > 1}
