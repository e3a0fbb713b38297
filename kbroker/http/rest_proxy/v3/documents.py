"""The documents of version 3: resources that name themselves and link to each other, and lists of them.

A list may have as many entries as there are partitions: it is written a few entries at a time, as its client
takes them, with turns for others in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from functools import lru_cache
from itertools import chain, islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from kbroker.http.answers import encoded, json_answer, streamed
from kbroker.http.endpoint import INTEGER, OBJECT, STRING, Schema
from kbroker.http.rest_proxy.errors import RestError

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

T = TypeVar("T")
Document = dict[str, Any]

_AT_ONCE = 10  # entries, for which no turns are needed
_TURN_SECONDS = 0.0005


class Place:
    """Where a resource is below a cluster: how it is linked to and named."""

    __slots__ = ("base_url", "cluster_id")

    def __init__(self, request: HttpRequest) -> None:
        """Raises RestError if the path names another cluster than this one."""
        self.cluster_id = request.broker.cluster.cluster_id
        self.base_url = f"{request.base_url}/v3/clusters/{_quoted(self.cluster_id)}"
        asked = request.path.get("cluster_id", self.cluster_id)
        if asked != self.cluster_id:
            raise RestError(404, f"There is no cluster {asked!r} here: /v3/clusters names the one there is.")

    def url(self, *path: str | int) -> str:
        return "/".join((self.base_url, *(_quoted(str(each)) for each in path)))

    def link(self, *path: str | int) -> Document:
        return {"related": self.url(*path)}

    def resource(
        self, kind: str, path: tuple[str | int, ...], name: str | None, members: Document
    ) -> Document:
        """``name``: of the resource within its cluster, topic=t/partition=0; None: it has none."""
        metadata: Document = {"self": self.url(*path)}
        if name is not None:
            metadata["resource_name"] = "/".join(
                (f"crn:///kafka={self.cluster_id}", *((name,) if name else ()))
            )
        return {"kind": kind, "metadata": metadata, "cluster_id": self.cluster_id, **members}


@lru_cache(10_000)
def _quoted(segment: str) -> str:
    return quote(segment, safe="-._~:", errors="surrogateescape")


def list_answer(kind: str, self_url: str, items: Iterable[T], build: Callable[[T], Document]) -> Response:
    """A list of what ``build`` makes of the items; it must not raise."""
    head: Document = {"kind": kind, "metadata": {"self": self_url, "next": None}}
    rest = iter(items)
    first = list(islice(rest, _AT_ONCE + 1))
    if len(first) <= _AT_ONCE:
        return json_answer({**head, "data": [build(item) for item in first]})
    return streamed(_written(head, chain(first, rest), build), "application/json")


async def _written(
    head: Document, items: Iterable[T], build: Callable[[T], Document]
) -> AsyncGenerator[bytes]:
    parts = [encoded(head)[:-1] + b',"data":[']
    end = perf_counter() + _TURN_SECONDS
    comma = b""
    for item in items:
        parts += comma, encoded(build(item))
        comma = b","
        if perf_counter() > end:
            yield b"".join(parts)
            parts.clear()
            await asyncio.sleep(0)
            end = perf_counter() + _TURN_SECONDS
    yield b"".join((*parts, b"]}"))


# schemas

_METADATA: Schema = {
    "type": "object",
    "required": ["self"],
    "properties": {
        "self": STRING,
        "next": {"type": ["string", "null"]},
        "resource_name": {"type": ["string", "null"]},
    },
}
LINK: Schema = {"type": "object", "required": ["related"], "properties": {"related": STRING}}
ERROR: Schema = {
    "title": "RestError",
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {"error_code": INTEGER, "message": {"type": ["string", "null"]}},
}


def resource_schema(kind: str, **members: Schema) -> Schema:
    return {
        "title": kind,
        "type": "object",
        "required": ["kind", "metadata", "cluster_id", *members],
        "properties": {"kind": {"const": kind}, "metadata": _METADATA, "cluster_id": STRING, **members},
    }


def list_schema(kind: str, entry: Schema = OBJECT) -> Schema:
    return {
        "title": kind,
        "type": "object",
        "required": ["kind", "metadata", "data"],
        "properties": {
            "kind": {"const": kind},
            "metadata": _METADATA,
            "data": {"type": "array", "items": entry},
        },
    }
