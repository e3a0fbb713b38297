"""What can be wrong with record data: the exceptions of the record modules.

Hostile or damaged bytes raise one of these, and never another exception.
"""

from __future__ import annotations


class RecordError(ValueError):
    """Record data that cannot be accepted."""


class CorruptRecord(RecordError):
    """The bytes are damaged: a wrong size, checksum or magic, or data that does not decompress."""


class InvalidRecord(RecordError):
    """The bytes are intact, but what they say breaks a rule of the record format.

    `index` is the position in its batch of the record at fault, -1 where no single record is.
    """

    def __init__(self, message: str, index: int = -1) -> None:
        super().__init__(message)
        self.index = index


class DecompressedTooLarge(InvalidRecord):
    """Compressed data that grows beyond the limit the reader set."""


class UnsupportedCompression(RecordError):
    """A compression codec that does not exist, or that the asked message format cannot carry."""
