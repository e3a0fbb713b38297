"""EndTxn, API key 26."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import BOOL, INT16, INT32, INT64, STRING


@message(api_key=26, kind="request", versions=(0, 5), flexible=3)
class EndTxnRequest:
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    committed: bool = field(BOOL)


@message(api_key=26, kind="response", versions=(0, 5), flexible=3)
class EndTxnResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, since=5, default=-1, ignorable=True)
    producer_epoch: int = field(INT16, since=5, default=-1, ignorable=True)
