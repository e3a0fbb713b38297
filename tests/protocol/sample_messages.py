"""One message per (message, version) that has something in every field."""

from __future__ import annotations

from typing import Any

from kbroker.protocol.message import schema_of
from kbroker.protocol.types import BOOL, FLOAT64, STRING, UUID, Array, FieldType, FixedType

TEXT = "täxt"


def full(cls: type[Any], version: int) -> Any:
    """Every field of this version set, every list with two elements."""
    return cls(**{f.name: sample(f.type, version) for f in schema_of(cls) if f.present(version)})


def sample(type_: FieldType, version: int) -> Any:
    if isinstance(type_, Array):
        return [sample(type_.of, version), sample(type_.of, version)]
    if isinstance(type_, type):
        return full(type_, version)
    if isinstance(type_, FixedType):
        return {BOOL: True, FLOAT64: 1.5, UUID: bytes(range(16))}.get(type_, 5)
    return TEXT if type_ is STRING else b"\x01bytes"
