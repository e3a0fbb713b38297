"""The addresses of brokers in responses, and other ones in their place.

Clients connect to the addresses that Metadata, FindCoordinator and DescribeCluster tell, and to the node
endpoints of Produce, Fetch and the share APIs (KIP-951). Only these bytes are replaced, and lengths around
them: everything else in the response stays, also what is not known here.
"""

# construct has no annotations:
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

import construct

from kbroker.protocol import reference
from kbroker.protocol.codec import ProtocolError, decode
from kbroker.protocol.headers import response_header_version
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import response_type
from kbroker.wire.connection import HELD_DATA_BYTES
from kbroker.wire.framing import LARGEST_FRAME
from kbroker.wire.tree import Node, Tree

Address = tuple[str, int]

_METADATA: Final = 3
_DESCRIBE_CLUSTER: Final = 60
_DATA_APIS: Final = (0, 1, 78, 79)  # they have addresses at their end, when a partition has moved

# Responses with addresses, and up to which size they are held for that.
HELD_APIS: Final = {
    _METADATA: LARGEST_FRAME,
    10: LARGEST_FRAME,
    _DESCRIBE_CLUSTER: LARGEST_FRAME,
    **dict.fromkeys(_DATA_APIS, HELD_DATA_BYTES),
}
_LAST: Final = {_METADATA: "brokers", _DESCRIBE_CLUSTER: "brokers"}  # fields behind which there is no address


class _Enough(Exception):
    """What is wanted has been read."""


class _TreeUntil(Tree):
    """A tree that ends behind a field of the message."""

    def __init__(self, last: str | None) -> None:
        super().__init__("", 0)
        self._last = last

    def leave(self, value: Any, position: int) -> None:
        node = self._open[-1]
        super().leave(value, position)
        if len(self._open) == 1 and node.name == self._last:
            raise _Enough


def rewrite(api_key: int, version: int, frame: bytes, local: Callable[[Address], Address]) -> bytes:
    """The response with the address that `local` gives for each; a frame that cannot be read stays."""
    if api_key not in HELD_APIS:
        return frame
    cls = response_type(api_key)
    low, high = schema_of(cls).versions
    if not low <= version <= high or (api_key in _DATA_APIS and not _has_endpoints(cls, version, frame)):
        return frame
    root = _addresses(api_key, cls, version, frame)
    if root is None:
        return frame
    flexible = schema_of(cls).is_flexible(version)
    edits: list[tuple[int, int, bytes]] = []
    _collect(root, frame, flexible, local, edits)
    for start, end, data in sorted(edits, reverse=True):
        frame = frame[:start] + data + frame[end:]
    return frame


def _has_endpoints(cls: type[Any], version: int, frame: bytes) -> bool:
    """By the quick codec: nearly all responses have none."""
    start = 4 + (response_header_version(schema_of(cls).api_key or 0, version) and _tags(frame))
    try:
        response, _ = decode(cls, version, memoryview(frame), start)
    except ProtocolError:
        return False
    return bool(response.node_endpoints)


def _tags(frame: bytes) -> int:
    """The size of the header's tagged fields, nearly always none."""
    stream = io.BytesIO(frame)
    stream.seek(4)
    try:
        reference.TaggedFields({}).parse_stream(stream)
    except construct.ConstructError:
        return 1
    return stream.tell() - 4


def _addresses(api_key: int, cls: type[Any], version: int, frame: bytes) -> Node | None:
    start = 4 + (response_header_version(api_key, version) and _tags(frame))
    tree = _TreeUntil(_LAST.get(api_key))
    stream = io.BytesIO(frame)
    stream.seek(start)
    try:
        reference.struct_for(cls, version).parse_stream(stream, trace=tree)
    except _Enough:
        pass
    except construct.ConstructError:
        return None
    return tree.root


def _collect(
    node: Node,
    frame: bytes,
    flexible: bool,
    local: Callable[[Address], Address],
    edits: list[tuple[int, int, bytes]],
) -> int:
    """Add what to replace in a struct and below it; returns by how much it grows."""
    grown = 0
    for child in node.children:
        inner = _collect(child, frame, flexible, local, edits)
        is_element = isinstance(child.name, int)
        if inner and child.field is not None and child.field.tag is not None and not is_element:
            assert child.end is not None
            size = child.end - child.start
            before, after = _uvarint(size), _uvarint(size + inner)
            edits.append((child.start - len(before), child.start, after))
            inner += len(after) - len(before)
        grown += inner
    host, port = node.child("host"), node.child("port")
    if host is None or port is None or host.end is None or port.end is None:
        return grown
    if not isinstance(host.value, str) or not host.value or port.value < 0:
        return grown  # no broker: an error stands beside it
    new_host, new_port = local((host.value, port.value))
    data = new_host.encode()
    length = _uvarint(len(data) + 1) if flexible else len(data).to_bytes(2, "big")
    edits.append((host.start, host.end, length + data))
    edits.append((port.start, port.end, new_port.to_bytes(4, "big")))
    return grown + len(length) + len(data) - (host.end - host.start)


def _uvarint(value: int) -> bytes:
    built: bytes = reference.UVARINT.build(value)
    return built
