"""InitProducerId, API key 22."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import BOOL, INT16, INT32, INT64, STRING


@message(api_key=22, kind="request", versions=(0, 6), flexible=2)
class InitProducerIdRequest:
    transactional_id: str | None = field(STRING, nullable_since=0)
    transaction_timeout_ms: int = field(INT32)
    producer_id: int = field(INT64, since=3, default=-1)
    producer_epoch: int = field(INT16, since=3, default=-1)
    enable2_pc: bool = field(BOOL, since=6)
    keep_prepared_txn: bool = field(BOOL, since=6)


@message(api_key=22, kind="response", versions=(0, 6), flexible=2)
class InitProducerIdResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, default=-1)
    producer_epoch: int = field(INT16)
    ongoing_txn_producer_id: int = field(INT64, since=6, default=-1)
    ongoing_txn_producer_epoch: int = field(INT16, since=6, default=-1)
