"""Hypothesis strategies for messages: any value that a (message, version) can carry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.types import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UINT16,
    UINT32,
    UUID,
    Array,
    FieldType,
)

# Long enough now and then for a length of two bytes as a varint.
TEXT = st.one_of(st.text(max_size=8), st.integers(120, 300).map("ä".__mul__))
BINARY = st.one_of(st.binary(max_size=8), st.integers(120, 300).map(bytes))

PRIMITIVES: dict[FieldType, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    INT8: st.integers(-(2**7), 2**7 - 1),
    INT16: st.integers(-(2**15), 2**15 - 1),
    INT32: st.integers(-(2**31), 2**31 - 1),
    INT64: st.integers(-(2**63), 2**63 - 1),
    UINT16: st.integers(0, 2**16 - 1),
    UINT32: st.integers(0, 2**32 - 1),
    FLOAT64: st.floats(allow_nan=False),
    UUID: st.binary(min_size=16, max_size=16),
    STRING: TEXT,
    BYTES: BINARY,
    RECORDS: BINARY,
}


Limits = Callable[[Field], st.SearchStrategy[Any] | None]


def no_limits(f: Field) -> None:
    """Any value of the field's type."""


@cache
def messages(cls: type[Any], version: int, limits: Limits = no_limits) -> st.SearchStrategy[Any]:
    """Objects that set fields of this version only. `limits` may give some fields a strategy of their own."""
    fields = {f.name: values(f, version, limits) for f in schema_of(cls) if f.present(version)}
    return st.builds(cls, **fields)


def values(f: Field, version: int, limits: Limits) -> st.SearchStrategy[Any]:
    strategy = limits(f)
    if strategy is None:
        strategy = of_type(f.type, version, limits)
    if f.nullable(version):
        strategy = st.none() | strategy
    return st.just(f.default_value()) | strategy if f.tag is not None else strategy


def of_type(type_: FieldType, version: int, limits: Limits) -> st.SearchStrategy[Any]:
    if isinstance(type_, Array):
        return st.lists(of_type(type_.of, version, limits), max_size=3)
    return messages(type_, version, limits) if isinstance(type_, type) else PRIMITIVES[type_]
