"""Hands whole records to kafka-python's producer: key, value and header values may be null, all at once.

The producer refuses such records, which Kafka allows, unless a serializer makes them.
"""

from __future__ import annotations

from typing import Any

from kafka.serializer.abstract import Serializer

Header = tuple[str, bytes | None]


class Headers(list[Any]):
    """The headers that a serializer fills in. They pass for none, because the producer adds up the lengths of
    header values for its futures, and null has none.
    """

    def __bool__(self) -> bool:
        return False


class RecordSerializer(Serializer):
    """Serializes a (value, headers) into a record's value and headers."""

    def serialize(
        self, topic: str, headers: list[Any], data: tuple[bytes | None, list[Header]]
    ) -> bytes | None:
        value, own = data
        headers.extend(own)
        return value
