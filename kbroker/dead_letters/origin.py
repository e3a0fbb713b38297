"""Where a dead letter came from and why, by the headers that whoever wrote it has added.

Share groups write KIP-1191's headers, Kafka Connect and Kafka Streams theirs, declared Spark jobs those of
docs/pipeline.md. All are text, and stand behind the headers that the record had before.

A record may have died more than once: the headers that were added last tell of the last time. Without them it
is the record as it was before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]

SHARE_PREFIX = "__dlq.errors."


class Origin(NamedTuple):
    kind: str
    """share, connect, streams, or pipeline."""
    topic: str | None
    partition: int | None
    offset: int | None
    group: str | None
    """The share group, the connector, or the pipeline."""
    delivery_count: int | None
    reason: str | None

    @property
    def place(self) -> str:
        """Such as orders-0@17."""
        if self.topic is None:
            return "unknown"
        partition = "" if self.partition is None else f"-{self.partition}"
        return self.topic + partition + ("" if self.offset is None else f"@{self.offset}")


class Letter(NamedTuple):
    origin: Origin
    headers: Headers
    """Those that the record had before."""


class _Family(NamedTuple):
    """The headers of one kind of writer: the prefix, and the names behind it."""

    kind: str
    prefix: str
    first: str
    """What it writes first."""
    group: tuple[str, ...]
    reason: tuple[str, ...]
    names: frozenset[str] | None = None
    """Where the prefix alone could be somebody else's."""

    def has(self, name: str) -> bool:
        if not name.startswith(self.prefix):
            return False
        return self.names is None or name.removeprefix(self.prefix) in self.names


_FAMILIES = (
    _Family("share", SHARE_PREFIX, "topic", ("group",), ("message",)),
    _Family(
        "connect",
        "__connect.errors.",
        "topic",
        ("connector.name",),
        ("exception.message", "exception.class.name"),
    ),
    _Family("streams", "__streams.errors.", "exception", (), ("message", "exception")),
    _Family(
        "pipeline",
        "kbroker.",
        "reason",
        ("pipeline",),
        ("reason",),
        frozenset(
            ("reason", "pipeline", "source", "topic", "partition", "offset", "timestamp", "sink", "watermark")
        ),
    ),
)


def letter(headers: Headers) -> Letter | None:
    """None: nobody says that the record is a dead letter."""
    family = _last_family(headers)
    if family is None:
        return None
    added: dict[str, bytes | None] = {}
    kept: list[tuple[str, bytes | None]] = []
    complete = False
    for name, value in reversed(headers):
        complete = complete or name in added  # what stands before tells of an earlier time
        if complete or not family.has(name):
            kept.append((name, value))
        else:
            added[name] = value
            complete = name == family.prefix + family.first
    kept.reverse()
    return Letter(_origin(family, added), kept)


def _last_family(headers: Headers) -> _Family | None:
    for name, _ in reversed(headers):
        for family in _FAMILIES:
            if family.has(name):
                return family
    return None


def _origin(family: _Family, added: dict[str, bytes | None]) -> Origin:
    def text(*names: str) -> str | None:
        for name in names:
            value = added.get(family.prefix + name)
            if value:
                return value.decode(errors="replace")
        return None

    def number(name: str) -> int | None:
        said = text(name)
        return int(said) if said is not None and said.isascii() and said.isdecimal() else None

    return Origin(
        family.kind,
        text("topic"),
        number("partition"),
        number("offset"),
        text(*family.group),
        number("delivery.count"),
        text(*family.reason),
    )
