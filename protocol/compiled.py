"""The compiled codec: one generated decoder and encoder per (message, version), made on first use.

They are kept in the message's schema. What they raise on bad input is raw (struct.error and the like);
`codec` is the entry that turns it into ProtocolError. Those in steps are generators: they pause now and
then, and return what the others return.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from kbroker.protocol.message import schema_of
from kbroker.protocol.types import Buffer

M = TypeVar("M")


def decoder(cls: type[M], version: int) -> Callable[[memoryview, int], tuple[M, int]]:
    schema = schema_of(cls)
    return schema.decoders.get(version) or _make_decoder(schema.decoders, cls, version, in_steps=False)


def step_decoder(
    cls: type[M], version: int
) -> Callable[[memoryview, int], Generator[None, None, tuple[M, int]]]:
    made = schema_of(cls).step_decoders
    return made.get(version) or _make_decoder(made, cls, version, in_steps=True)


def _make_decoder(
    made: dict[int, Callable[..., Any]], cls: type[Any], version: int, *, in_steps: bool
) -> Callable[..., Any]:
    from kbroker.protocol.decoder_source import make_decoder

    schema_of(cls).check_version(version)
    found = made[version] = make_decoder(cls, version, in_steps=in_steps)
    return found


def encoder(cls: type[Any], version: int) -> Callable[[Any, bytearray], list[Buffer]]:
    schema = schema_of(cls)
    return schema.encoders.get(version) or _make_encoder(schema.encoders, cls, version, in_steps=False)


def step_encoder(
    cls: type[Any], version: int
) -> Callable[[Any, bytearray], Generator[int, None, list[Buffer]]]:
    made = schema_of(cls).step_encoders
    return made.get(version) or _make_encoder(made, cls, version, in_steps=True)


def _make_encoder(
    made: dict[int, Callable[..., Any]], cls: type[Any], version: int, *, in_steps: bool
) -> Callable[..., Any]:
    from kbroker.protocol.encoder_source import make_encoder

    schema_of(cls).check_version(version)
    found = made[version] = make_encoder(cls, version, in_steps=in_steps)
    return found
