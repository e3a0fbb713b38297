"""Everything that is declared: each message class and each of its versions, as test parameters."""

from __future__ import annotations

from typing import Any

import pytest

from kbroker.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kbroker.protocol.coordinator_records import (
    classic_groups,
    consumer_groups,
    offsets,
    share_groups,
    streams_groups,
    transactions,
)
from kbroker.protocol.headers import RequestHeader, ResponseHeader
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import API_NAMES, request_type, response_type

COORDINATOR_RECORDS: list[type[Any]] = [
    each
    for module in (offsets, classic_groups, consumer_groups, share_groups, streams_groups, transactions)
    for each in vars(module).values()
    if isinstance(each, type) and each.__module__ == module.__name__ and schema_of(each).kind != "struct"
]
MESSAGES: list[type[Any]] = [
    RequestHeader,
    ResponseHeader,
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
    *(of(api_key) for api_key in API_NAMES for of in (request_type, response_type)),
    *COORDINATOR_RECORDS,
]


def versions_of(cls: type[Any]) -> range:
    low, high = schema_of(cls).versions
    return range(low, high + 1)


def case_id(value: object) -> str:
    return value.__name__ if isinstance(value, type) else f"v{value}"


CASES = [(cls, version) for cls in MESSAGES for version in versions_of(cls)]

each_message = pytest.mark.parametrize("cls", MESSAGES, ids=case_id)
each_message_and_version = pytest.mark.parametrize(("cls", "version"), CASES, ids=case_id)
