"""Record type 0 of `__transaction_state`: the transaction of a transactional id."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, INT64, STRING, Array

NEWEST = 1


@message(api_key=0, kind="coordinator-key", versions=(0, 0))
class TransactionLogKey:
    transactional_id: str = field(STRING)


@struct
class PartitionsSchema:
    topic: str = field(STRING)
    partition_ids: list[int] = field(Array(INT32))


@message(api_key=0, kind="coordinator-value", versions=(0, 1), flexible=1)
class TransactionLogValue:
    producer_id: int = field(INT64)
    previous_producer_id: int = field(INT64, since=1, tag=0, default=-1)
    next_producer_id: int = field(INT64, since=1, tag=1, default=-1)
    producer_epoch: int = field(INT16)
    next_producer_epoch: int = field(INT16, since=1, tag=3, default=-1)
    transaction_timeout_ms: int = field(INT32)
    transaction_status: int = field(INT8)
    transaction_partitions: list[PartitionsSchema] | None = field(Array(PartitionsSchema), nullable_since=0)
    transaction_last_update_timestamp_ms: int = field(INT64)
    transaction_start_timestamp_ms: int = field(INT64)
    client_transaction_version: int = field(INT16, since=1, tag=2)
