"""For every API, requests as large as they may be: each of its lists in turn filled with as much as fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import request_type
from kbroker.protocol.types import STRING, UUID, Array

_NAMES = ("topic", "name", "topic_name", "resource_name")
_GROUPS = ("group_id", "group", "key")
_WORDS_OF_ACLS = ("resource_type", "resource_type_filter", "operation", "permission_type")


class Filler:
    """Makes requests about one topic and one group."""

    def __init__(self, topic: str, topic_id: bytes, group: str, size_bytes: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.group = group
        self.size_bytes = size_bytes

    def requests(self, api_key: int, version: int) -> Iterator[tuple[str, Any]]:
        """Which list is full, of what, and the request."""
        cls = request_type(api_key)
        paths = list(_list_paths(cls, version))
        if not paths:
            yield "plain", self._message(cls, version)
        for path in paths:
            for distinct in (False, True):
                request = self._filled(cls, version, path, distinct)
                yield f"{'.'.join(path)} {'distinct' if distinct else 'repeated'}", request

    def _filled(self, cls: type[Any], version: int, path: tuple[str, ...], distinct: bool) -> Any:
        request = self._message(cls, version)
        owner, of = request, cls
        for name in path[:-1]:
            of = _list_type(of, name)
            inner = self._message(of, version)
            setattr(owner, name, [inner])
            owner = inner
        of = _list_type(of, path[-1])
        first = self._entry(of, version, 0, distinct)
        setattr(owner, path[-1], [first])
        one = len(encode_bytes(request, version))
        setattr(owner, path[-1], [first, self._entry(of, version, 10_000, distinct)])
        size = max(1, len(encode_bytes(request, version)) - one)
        count = (self.size_bytes - one - 1000) // (size + 3 * distinct)
        setattr(owner, path[-1], [self._entry(of, version, n, distinct) for n in range(max(count, 1))])
        return request

    def _entry(self, of: Any, version: int, number: int, distinct: bool) -> Any:
        if isinstance(of, type):
            entry = self._message(of, version)
            if distinct:
                for field in schema_of(of):
                    if field.type is STRING and field.present(version) and field.tag is None:
                        setattr(entry, field.name, f"{number}")
                        break
                    if field.type is UUID and field.present(version):
                        setattr(entry, field.name, number.to_bytes(16, "big"))
                        break
            return entry
        if of is STRING:
            return f"{number}" if distinct else self.group
        if of is UUID:
            return number.to_bytes(16, "big") if distinct else self.topic_id
        return number % 100 if distinct else 0

    def _message(self, cls: type[Any], version: int) -> Any:
        message = cls()
        for field in schema_of(cls):
            if not field.present(version) or field.tag is not None:
                continue
            if field.type is STRING and field.name in _NAMES:
                setattr(message, field.name, self.topic)
            elif field.name in _WORDS_OF_ACLS and hasattr(message, "permission_type"):
                setattr(message, field.name, 2)  # there is no answer to UNKNOWN
            elif field.type is STRING and field.name in _GROUPS:
                setattr(message, field.name, self.group)
            elif field.type is UUID and field.name == "topic_id":
                setattr(message, field.name, self.topic_id)
            elif field.name == "resource_type":
                message.resource_type = 2  # a topic
            elif field.name == "acks":
                message.acks = 1
        return message


def _list_paths(cls: type[Any], version: int, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in schema_of(cls):
        if isinstance(field.type, Array) and field.present(version) and field.tag is None:
            yield (*before, field.name)
            if isinstance(field.type.of, type):
                yield from _list_paths(field.type.of, version, (*before, field.name))


def _list_type(cls: type[Any], name: str) -> Any:
    (field,) = (field for field in schema_of(cls) if field.name == name)
    assert isinstance(field.type, Array)
    return field.type.of
