"""What Kafka's coordinators write into `__consumer_offsets` and `__transaction_state`.

A key starts with the type of its record as int16, a value with its version. A null value, a tombstone, says
that there is nothing under the key any more.
"""

from __future__ import annotations

from typing import Any

from kbroker.protocol.codec import decode, encode
from kbroker.protocol.message import schema_of

_KEY_VERSION = 0


def encode_key(key: Any) -> bytes:
    record_type = schema_of(type(key)).api_key
    assert record_type is not None
    return b"".join(encode(key, _KEY_VERSION, bytearray(record_type.to_bytes(2, "big"))))


def encode_value(value: Any, version: int = 0) -> bytes:
    return b"".join(encode(value, version, bytearray(version.to_bytes(2, "big"))))


def decode_value(cls: type[Any], data: bytes) -> Any:
    """The value, by the version that it tells itself."""
    return decode(cls, int.from_bytes(data[:2], "big"), memoryview(data), 2)[0]
