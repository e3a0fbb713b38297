"""The declared job as typed objects: each value of its kind; checks.py checks that they fit together.

A path in the file is relative to the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Trigger:
    """`kind` is available_now, interval or continuous."""

    kind: str
    interval: str = ""

    def __str__(self) -> str:
        return {"available_now": "available_now", "interval": self.interval}.get(
            self.kind, f"continuous {self.interval}"
        )


@dataclass(frozen=True, slots=True)
class Watermark:
    column: str
    delay: str
    late: str
    """What becomes of rows that are later: drop or dead_letter."""
    line: int


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    expect: str
    line: int


@dataclass(frozen=True, slots=True)
class Decode:
    format: str
    line: int
    schema: str | None = None
    """Columns as DDL."""
    avro_schema: str | None = None
    """The schema as JSON text."""
    infer: int | None = None
    """From how many records."""
    columns: tuple[str, ...] = ()
    """Names for the inferred columns of csv."""
    rules: tuple[Rule, ...] = ()
    """What a JSON Schema asks for beyond types."""
    confluent_header: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    line: int
    topics: tuple[str, ...]
    pattern: str | None
    assign: Mapping[str, list[int]] | None
    starting_offsets: Any
    options: Mapping[str, str]
    decode: Decode
    rules: tuple[Rule, ...]
    dead_letter: str | None
    on_reject: str
    tombstones: str
    watermark: Watermark | None
    lines: Mapping[str, int]

    def named_topics(self) -> tuple[str, ...]:
        """The topics that must be there: none where a pattern selects them."""
        return self.topics or tuple(self.assign or ())


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    line: int
    path: str
    format: str
    schema: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sql:
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    view: str
    time: str
    size: str
    slide: str | None
    group_by: tuple[str, ...]
    aggregate: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Deduplicate:
    view: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Join:
    left: str
    right: str
    on: tuple[str, ...]
    how: str


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    line: int
    action: Sql | Window | Deduplicate | Join
    action_line: int
    watermark: Watermark | None


@dataclass(frozen=True, slots=True)
class Sink:
    name: str
    line: int
    view: str
    kind: str
    """delta, parquet, kafka or console."""
    target: str
    """The table's path or the topic."""
    mode: str
    key: tuple[str, ...]
    latest_by: str | None
    partition_by: tuple[str, ...]
    merge_schema: bool
    encode: str
    output_mode: str | None
    trigger: Trigger
    options: Mapping[str, str]
    lines: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Pipeline:
    path: str
    name: str
    bootstrap_servers: str
    state: str
    progress_group: str | None
    kafka: Mapping[str, str]
    spark: Mapping[str, str]
    retry_for: str
    sources: Mapping[str, Source]
    tables: Mapping[str, Table]
    steps: Mapping[str, Step]
    sinks: Mapping[str, Sink]
