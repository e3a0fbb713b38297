"""Decode and encode messages: the entry to the compiled codec.

Whatever is wrong with the bytes or the values, the caller sees ProtocolError and nothing else.
"""

from __future__ import annotations

from struct import error as StructError
from typing import Any, TypeVar

from kbroker.protocol.compiled import decoder, encoder
from kbroker.protocol.types import Buffer, ProtocolError

__all__ = ["ProtocolError", "decode", "encode", "encode_bytes"]

M = TypeVar("M")


def decode(cls: type[M], version: int, buf: memoryview, pos: int = 0) -> tuple[M, int]:
    """The message at `pos` and the position after it. RECORDS are slices of `buf`; all else is copied."""
    try:
        return decoder(cls, version)(buf, pos)
    except ProtocolError as error:
        raise ProtocolError(f"{cls.__name__} v{version}: {error}") from None
    except (StructError, IndexError):
        raise ProtocolError(f"{cls.__name__} v{version}: the frame ends inside the message") from None
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{cls.__name__} v{version}: a string is not UTF-8: {error.reason}") from None


def encode(message: Any, version: int, prefix: bytearray | None = None) -> list[Buffer]:
    """The parts that make up the message, in order; RECORDS are parts of their own, not copied.

    `prefix` is extended and becomes the start of the first part: room for a size and a header.
    """
    cls = type(message)
    try:
        return encoder(cls, version)(message, bytearray() if prefix is None else prefix)
    except ProtocolError as error:
        raise ProtocolError(f"{cls.__name__} v{version}: {error}") from None
    except (StructError, AttributeError, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise ProtocolError(f"{cls.__name__} v{version} cannot be encoded: {error}") from error


def encode_bytes(message: Any, version: int) -> bytes:
    return b"".join(encode(message, version))
