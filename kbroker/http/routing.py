"""From a path to its endpoints: a tree of path segments, the literal ones before the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from kbroker.http.endpoint import Endpoint

_REMEMBERED: Final = 1024  # paths: most requests are for few of them
_LONGEST_REMEMBERED: Final = 200


class Found(NamedTuple):
    endpoints: Sequence[Endpoint]
    """Of the method, if there are any."""
    values: tuple[str, ...]
    """Of the path's parameters, in their order."""
    allowed: Sequence[str]
    """The methods that the path has."""


class _Node:
    __slots__ = ("literals", "methods", "parameter")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, list[Endpoint]] = {}


class Router:
    def __init__(self, endpoints: Iterable[tuple[str, Endpoint]]) -> None:
        """By whole path."""
        self._root = _Node()
        self._find_again = lru_cache(_REMEMBERED)(self._find)
        for path, endpoint in endpoints:
            self._add(path, endpoint)

    def find(self, raw_path: bytes, method: str) -> Found | None:
        """None: there is no such path."""
        if len(raw_path) > _LONGEST_REMEMBERED:
            return self._find(raw_path, method)
        return self._find_again(raw_path, method)

    def _find(self, raw_path: bytes, method: str) -> Found | None:
        segments = [_decoded(segment) for segment in raw_path.split(b"/")[1:]]
        if len(segments) > 1 and not segments[-1]:  # a slash at the end
            segments.pop()
        found = _walk(self._root, segments, 0, ())
        if found is None:
            return None
        node, values = found
        endpoints = node.methods.get(method, ())
        if not endpoints and method == "HEAD":
            endpoints = node.methods.get("GET", ())
        return Found(endpoints, values, sorted(node.methods))

    def _add(self, path: str, endpoint: Endpoint) -> None:
        node = self._root
        for segment in (path.rstrip("/") or "/").split("/")[1:]:
            if segment.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        alike = node.methods.setdefault(endpoint.method, [])
        if any(other.media == endpoint.media for other in alike):
            raise ValueError(f"{endpoint.method} {path} stands twice in the table")
        alike.append(endpoint)
        alike.sort(key=lambda each: each.media is None)


def _walk(
    node: _Node, segments: list[str], index: int, values: tuple[str, ...]
) -> tuple[_Node, tuple[str, ...]] | None:
    if index == len(segments):
        return (node, values) if node.methods else None
    segment = segments[index]
    literal = node.literals.get(segment)
    if literal is not None:
        found = _walk(literal, segments, index + 1, values)
        if found is not None:
            return found
    if node.parameter is None or not segment:
        return None
    return _walk(node.parameter, segments, index + 1, (*values, segment))


def _decoded(segment: bytes) -> str:
    if b"%" in segment:
        segment = unquote_to_bytes(segment)
    return segment.decode(errors="surrogateescape")
