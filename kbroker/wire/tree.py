"""A message read with its construct definition as a tree of fields, each with its place in the frame.

A message that cannot be read gives the tree of what was read before, and the problem.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import construct

from kbroker.protocol import reference
from kbroker.protocol.message import Field
from kbroker.protocol.types import STRING, Array, FixedType


class Problem(NamedTuple):
    """Why a frame cannot be read, or not to its end."""

    position: int  # of the field, in the frame, from behind its length
    path: str  # of the field; empty: the frame as a whole
    reason: str

    def __str__(self) -> str:
        where = f"byte {self.position}" + (f", {self.path}" if self.path else "")
        return f"{where}: {self.reason}"


class Node:
    """A field, or an element of a list: `name` is its index then, and `field` the list's declaration."""

    __slots__ = ("children", "content", "end", "field", "length", "name", "start", "value")

    def __init__(self, name: str | int, field: Field | None, start: int) -> None:
        self.name = name
        self.field = field
        self.start = start
        self.content: int | None = None  # where the bytes behind the length begin
        self.length: int | None = None  # what the length says
        self.end: int | None = None  # None: it could not be read to its end
        self.value: Any = None  # of a field without children
        self.children: list[Node] = []

    @property
    def is_list(self) -> bool:
        return (
            self.field is not None and isinstance(self.field.type, Array) and not isinstance(self.name, int)
        )

    @property
    def is_struct(self) -> bool:
        return isinstance(self.type, type)

    @property
    def is_null(self) -> bool:
        return self.end is not None and self.value is None and not self.children

    @property
    def type(self) -> Any:
        """The type of a value; of a list, that of its elements."""
        if self.field is None:
            return None
        return self.field.type.of if isinstance(self.field.type, Array) else self.field.type

    def child(self, name: str | int) -> Node | None:
        for node in self.children:
            if node.name == name:
                return node
        return None

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a child."""
        found = self.child(name)
        return default if found is None or found.end is None else found.value

    def walk(self) -> Iterator[Node]:
        """This one and all below it, in the order of the frame."""
        yield self
        for node in self.children:
            yield from node.walk()

    def walk_paths(self, path: str = "") -> Iterator[tuple[str, Node]]:
        yield path, self
        for node in self.children:
            yield from node.walk_paths(joined(path, node.name))


def joined(path: str, name: str | int) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


class Tree:
    """Follows a parse (`reference.Trace`)."""

    def __init__(self, name: str, start: int) -> None:
        self.root = Node(name, None, start)
        self._open = [self.root]

    def enter(self, name: str | int, field: Field | None, position: int) -> None:
        parent = self._open[-1]
        node = Node(name, parent.field if isinstance(name, int) else field, position)
        parent.children.append(node)
        self._open.append(node)

    def content(self, length: int, position: int) -> None:
        self._open[-1].length = length
        self._open[-1].content = position

    def leave(self, value: Any, position: int) -> None:
        node = self._open.pop()
        node.end = position
        if not node.children:
            node.value = value

    def forget(self) -> None:
        node = self._open.pop()
        self._open[-1].children.remove(node)

    def failed(self) -> tuple[Node, str]:
        """The innermost field that was not read to its end, and its path."""
        path = ""
        for node in self._open[1:]:
            path = joined(path, node.name)
        return self._open[-1], path


def read(cls: type[Any], version: int, frame: bytes, position: int = 0) -> tuple[Node, int, Problem | None]:
    """The message at `position`, the position behind it, and why not all of it could be read."""
    tree = Tree(cls.__name__, position)
    stream = io.BytesIO(frame)
    stream.seek(position)
    try:
        reference.struct_for(cls, version).parse_stream(stream, trace=tree)
    except construct.ConstructError as error:
        node, path = tree.failed()
        return tree.root, node.start, Problem(node.start, path, _reason(error, node, len(frame)))
    tree.root.end = stream.tell()
    return tree.root, stream.tell(), None


def _reason(error: construct.ConstructError, node: Node, size: int) -> str:
    """In words that do not repeat the bytes of the field: they may be a secret."""
    if isinstance(error, construct.StringError):
        return "the text is not UTF-8"
    if isinstance(error, construct.IntegerError):
        return "a varint of more than 32 bits"
    if isinstance(error, construct.ValidationError):
        return "a string cannot be that long"
    if isinstance(error, construct.RangeError):
        return "the list is null, which it may not be here"
    if node.length is not None and node.content is not None:
        what = "the text" if node.type is STRING else "the value"
        if node.length < 0:
            return f"{what} is null, which it may not be here"
        return f"the frame ends: {what} has {node.length} bytes, {size - node.content} are there"
    if isinstance(node.type, FixedType) and not node.is_list:
        return f"the frame ends: {node.type.name} takes {node.type.size} bytes, {size - node.start} are there"
    if size <= node.start:
        return "the frame ends before it"
    if node.name == reference.TAGGED:
        return "the frame ends within a tagged field"
    if node.is_struct or node.field is None:
        return "a tagged field does not fill its size"
    return "the frame ends within it"
