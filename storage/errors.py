"""What a log refuses, and why. The server maps each type to Kafka's error code in one table.

What is wrong with the bytes of a batch (CorruptRecord, InvalidRecord, …): see kbroker.protocol.records.
"""

from __future__ import annotations

import errno

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_PASSING = (*NO_ROOM, *NO_DESCRIPTORS, errno.ENOMEM, errno.EAGAIN)


class StorageError(Exception):
    """Base of everything below."""


class OffsetOutOfRange(StorageError):
    """A read below log start or above log end; a DeleteRecords above the high watermark."""


class UnexpectedOffset(StorageError):
    """A batch that was to be appended at an offset which is not the log end offset (any more)."""

    def __init__(self, expected_offset: int, log_end_offset: int) -> None:
        super().__init__(f"the next offset is {log_end_offset}, not {expected_offset}")
        self.log_end_offset = log_end_offset


class RecordTooLarge(StorageError):
    """A batch larger than max.message.bytes."""


class RecordListTooLarge(StorageError):
    """More bytes in one append than a whole segment may hold."""


class InvalidTimestamp(StorageError):
    """A CreateTime outside message.timestamp.before.max.ms / message.timestamp.after.max.ms.

    `indexes` are the positions in their batch of the records at fault.
    """

    def __init__(self, message: str, *indexes: int) -> None:
        super().__init__(message)
        self.indexes = indexes


class ProducerError(StorageError):
    """Base of what the state of an idempotent or transactional producer refuses."""


class OutOfOrderSequence(ProducerError):
    """A sequence number that does not follow the producer's last one."""


class InvalidProducerEpoch(ProducerError):
    """An epoch below the one the log knows: the producer is fenced."""


class UnknownProducerId(ProducerError):
    """No state for this producer id, though the append needs one."""


class InvalidTransactionState(ProducerError):
    """A transactional append that does not belong to an open, verified transaction."""


class TransactionCoordinatorFenced(ProducerError):
    """A transaction marker from a coordinator epoch older than the last one written."""


class LogFenced(StorageError):
    """An I/O error made the state of the disk unknown: the log takes no append until it is reopened."""


class Shortage(StorageError):
    """The machine is short of something that comes back, such as descriptors: later it may work."""


class DiskFull(Shortage):
    """No space or quota left. Nothing of the append stays; appending works again when there is room."""


class ImageFailed(StorageError):
    """No image of the data directory can be made: the file system has no hard links, say."""


class LogDeleted(StorageError):
    """The partition was deleted."""


class InconsistentTopicId(StorageError):
    """The directory belongs to a topic of the same name with another topic id."""


class DirectoryLocked(StorageError):
    """Another process uses the data directory."""


class CorruptDirectory(StorageError):
    """A data directory whose metadata cannot be read or belongs to another cluster or node."""


def shortage(error: OSError, where: str) -> Shortage | None:
    """What a log says of an I/O error that passes; None: this one does not."""
    if error.errno not in _PASSING:
        return None
    return (DiskFull if error.errno in NO_ROOM else Shortage)(f"{where}: {error}")
