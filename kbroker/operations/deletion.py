"""Records deleted from the front of a log: its log start offset raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.pending import after
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation
from kbroker.topics.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kbroker.pending import Pending
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Log

HIGH_WATERMARK = -1


def delete_records(resources: Resources, topic: str, partition: int, offset: int) -> int | Pending[int]:
    """The log start offset, once the records before ``offset`` are gone. One below it changes nothing."""
    log = resources.log(topic, partition, AclOperation.DELETE)
    if topic in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if log.config.cleanup_policy == {"compact"}:
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    refreshed = log.refresh()
    return _delete(log, offset) if refreshed is None else after(refreshed, lambda _: _delete(log, offset))


def _delete(log: Log, offset: int) -> int | Pending[int]:
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return log.delete_records_before(offset)
