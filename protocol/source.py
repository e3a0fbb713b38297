"""What the generators of decoders and encoders share: lines, names, structs with a function of their own.

A struct is written in line where it stands, because a call per element costs more than reading most elements.
Only a struct that one message uses in several places becomes a function, to keep the generated source short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from kbroker.protocol.message import schema_of
from kbroker.protocol.types import Array


class Source:
    """The text of one generated codec, and the objects that its names stand for."""

    def __init__(self, cls: type[Any], version: int, names: dict[str, Any]) -> None:
        self.cls = cls
        self.version = version
        self.flexible = schema_of(cls).is_flexible(version)
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

    def _function(self, cls: type[Any], write: Callable[[str], None]) -> str:
        """The name of the function for a shared struct; `write` writes it the first time."""
        name = self._functions.get(cls)
        if name is None:
            name = self._functions[cls] = self._variable("f")
            lines, indent = self._lines, self._indent
            self._lines, self._indent = [], 0
            write(name)
            self._lines, self._indent = self._lines + lines, indent
        return name

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
