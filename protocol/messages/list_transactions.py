"""ListTransactions, API key 66."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, Array


@message(api_key=66, kind="request", versions=(0, 2), flexible=0)
class ListTransactionsRequest:
    state_filters: list[str] = field(Array(STRING))
    producer_id_filters: list[int] = field(Array(INT64))
    duration_filter: int = field(INT64, since=1, default=-1)
    transactional_id_pattern: str | None = field(STRING, since=2, nullable_since=2, default=None)


@struct
class TransactionState:
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    transaction_state: str = field(STRING)


@message(api_key=66, kind="response", versions=(0, 2), flexible=0)
class ListTransactionsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    unknown_state_filters: list[str] = field(Array(STRING))
    transaction_states: list[TransactionState] = field(Array(TransactionState))
