"""DescribeTransactions, API key 65."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, Array


@message(api_key=65, kind="request", versions=(0, 0), flexible=0)
class DescribeTransactionsRequest:
    transactional_ids: list[str] = field(Array(STRING))


@struct
class TopicData:
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@struct
class TransactionState:
    error_code: int = field(INT16)
    transactional_id: str = field(STRING)
    transaction_state: str = field(STRING)
    transaction_timeout_ms: int = field(INT32)
    transaction_start_time_ms: int = field(INT64)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    topics: list[TopicData] = field(Array(TopicData))


@message(api_key=65, kind="response", versions=(0, 0), flexible=0)
class DescribeTransactionsResponse:
    throttle_time_ms: int = field(INT32)
    transaction_states: list[TransactionState] = field(Array(TransactionState))
