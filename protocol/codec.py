"""Decode and encode messages: the entry to the compiled codec.

Whatever is wrong with the bytes or the values, the caller sees ProtocolError and nothing else.
"""

from __future__ import annotations

from collections.abc import Generator
from struct import error as StructError
from typing import Any, TypeVar

from kbroker.protocol.compiled import decoder, encoder, step_decoder, step_encoder
from kbroker.protocol.types import Buffer, ProtocolError

__all__ = ["ProtocolError", "decode", "decode_in_steps", "encode", "encode_bytes", "encode_in_steps"]

M = TypeVar("M")

_UNREADABLE = (ProtocolError, StructError, IndexError, UnicodeDecodeError)
_UNWRITABLE = (ProtocolError, StructError, AttributeError, TypeError, OverflowError, UnicodeEncodeError)


def decode(cls: type[M], version: int, buf: memoryview, pos: int = 0) -> tuple[M, int]:
    """The message at `pos` and the position after it. RECORDS are slices of `buf`; all else is copied."""
    try:
        return decoder(cls, version)(buf, pos)
    except _UNREADABLE as error:
        raise _unreadable(cls, version, error) from None


def decode_in_steps(
    cls: type[M], version: int, buf: memoryview, pos: int = 0
) -> Generator[None, None, tuple[M, int]]:
    """The same, with a pause after every few elements of its lists."""
    try:
        return (yield from step_decoder(cls, version)(buf, pos))
    except _UNREADABLE as error:
        raise _unreadable(cls, version, error) from None


def encode(message: Any, version: int, prefix: bytearray | None = None) -> list[Buffer]:
    """The parts that make up the message, in order; RECORDS are parts of their own, not copied.

    `prefix` is extended and becomes the start of the first part: room for a size and a header.
    """
    try:
        return encoder(type(message), version)(message, bytearray() if prefix is None else prefix)
    except _UNWRITABLE as error:
        raise _unwritable(message, version, error) from error


def encode_in_steps(
    message: Any, version: int, prefix: bytearray | None = None
) -> Generator[int, None, list[Buffer]]:
    """The same, with a pause after every few elements of its lists, which tells how many bytes there are."""
    try:
        return (
            yield from step_encoder(type(message), version)(
                message, bytearray() if prefix is None else prefix
            )
        )
    except _UNWRITABLE as error:
        raise _unwritable(message, version, error) from error


def encode_bytes(message: Any, version: int) -> bytes:
    return b"".join(encode(message, version))


def _unreadable(cls: type[Any], version: int, error: Exception) -> ProtocolError:
    if isinstance(error, ProtocolError):
        what = str(error)
    elif isinstance(error, UnicodeDecodeError):
        what = f"a string is not UTF-8: {error.reason}"
    else:
        what = "the frame ends inside the message"
    return ProtocolError(f"{cls.__name__} v{version}: {what}")


def _unwritable(message: Any, version: int, error: Exception) -> ProtocolError:
    name = type(message).__name__
    if isinstance(error, ProtocolError):
        return ProtocolError(f"{name} v{version}: {error}")
    return ProtocolError(f"{name} v{version} cannot be encoded: {error}")
