"""Leader epochs as clients ask for them.

A leader that has not written since its epoch began counts, with that epoch, from the log end on: its
log knows only the epochs of batches.
"""

from __future__ import annotations

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.storage.interface import EpochEndOffset, Log

UNKNOWN = -1
_UNDEFINED = EpochEndOffset(UNKNOWN, -1)


def check(asked: int, current: int) -> None:
    """A client that knows another leader epoch than we do must refresh its metadata first."""
    if asked in (UNKNOWN, current):
        return
    raise ApiError(ErrorCode.FENCED_LEADER_EPOCH if asked < current else ErrorCode.UNKNOWN_LEADER_EPOCH)


def end_offset(log: Log, epoch: int) -> EpochEndOffset:
    """Where the largest epoch at or below `epoch` ends."""
    if epoch == UNKNOWN or epoch > log.leader_epoch:
        return _UNDEFINED
    if epoch == log.leader_epoch:
        return EpochEndOffset(epoch, log.log_end_offset)
    if log.latest_epoch == UNKNOWN:
        return EpochEndOffset(epoch, log.log_end_offset)
    return log.end_offset_for_epoch(min(epoch, log.latest_epoch))


def at_log_start(log: Log) -> int:
    """The epoch that the log start offset belongs to."""
    if log.log_start_offset == log.log_end_offset:
        return log.leader_epoch
    epoch = log.latest_epoch
    while epoch > 0:
        earlier = log.end_offset_for_epoch(epoch - 1)
        if earlier.end_offset <= log.log_start_offset:
            break
        epoch = earlier.leader_epoch
    return epoch
