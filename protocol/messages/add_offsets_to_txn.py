"""AddOffsetsToTxn, API key 25."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import INT16, INT32, INT64, STRING


@message(api_key=25, kind="request", versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest:
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    group_id: str = field(STRING)


@message(api_key=25, kind="response", versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
