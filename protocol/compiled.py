"""The compiled codec: one generated decoder and encoder per (message, version), made on first use.

They are kept in the message's schema. What they raise on bad input is raw (struct.error and the like);
`codec` is the entry that turns it into ProtocolError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kbroker.protocol.message import schema_of
from kbroker.protocol.types import Buffer

M = TypeVar("M")


def decoder(cls: type[M], version: int) -> Callable[[memoryview, int], tuple[M, int]]:
    schema = schema_of(cls)
    found = schema.decoders.get(version)
    if found is None:
        from kbroker.protocol.decoder_source import make_decoder

        schema.check_version(version)
        found = schema.decoders[version] = make_decoder(cls, version)
    return found


def encoder(cls: type[Any], version: int) -> Callable[[Any, bytearray], list[Buffer]]:
    schema = schema_of(cls)
    found = schema.encoders.get(version)
    if found is None:
        from kbroker.protocol.encoder_source import make_encoder

        schema.check_version(version)
        found = schema.encoders[version] = make_encoder(cls, version)
    return found
