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

    `indexes` are the positions in their batch of the records at fault, where it is about single records.
    """

    def __init__(self, message: str, *indexes: int) -> None:
        super().__init__(message)
        self.indexes = indexes


class DecompressedTooLarge(InvalidRecord):
    """Compressed data that grows beyond the limit the reader set."""


class UnsupportedCompression(RecordError):
    """A compression codec that does not exist, or that the asked message format cannot carry."""
