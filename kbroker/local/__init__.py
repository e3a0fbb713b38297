"""Kafka in this process, without a socket, for code beside the broker (docs/local.md).

async with LocalBroker(data="data") as broker:
    await broker.publish("orders", {"amount": 3}, key="ada")
    async for record in broker.subscribe("orders", group="billing"):
        ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.local.broker import LocalAccess, LocalBroker
from kbroker.local.errors import ClosedError, KafkaError, OpenError, UnexpectedOffset, WrongLoopError
from kbroker.local.publishing import Origin
from kbroker.local.reading import Fetched
from kbroker.local.records import NewRecord, ReceivedRecord, RecordMetadata
from kbroker.local.topics import TopicDescription
from kbroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kbroker.config.description import Described as ConfigDescription
    from kbroker.coordinators.groups.coordinator import ListedGroup
    from kbroker.local.loop_thread import LoopThread
    from kbroker.local.subscription import Subscription
    from kbroker.local.transaction import Transaction
    from kbroker.operations.group_lag import GroupLag, PartitionLag
    from kbroker.operations.group_reset import ResetOffset, ResetTo
    from kbroker.operations.groups import DescribedGroup, DescribedMember
    from kbroker.operations.partitions import PartitionDescription
    from kbroker.operations.transactions.describing import DescribedTransaction

__all__ = [
    "ClosedError",
    "CommittedOffset",
    "ConfigDescription",
    "DescribedGroup",
    "DescribedMember",
    "DescribedTransaction",
    "ErrorCode",
    "Fetched",
    "GroupLag",
    "KafkaError",
    "ListedGroup",
    "LocalAccess",
    "LocalBroker",
    "LoopThread",
    "NewRecord",
    "OpenError",
    "Origin",
    "PartitionDescription",
    "PartitionLag",
    "ReceivedRecord",
    "RecordMetadata",
    "ResetOffset",
    "ResetTo",
    "Subscription",
    "TopicDescription",
    "TopicPartition",
    "Transaction",
    "UnexpectedOffset",
    "WrongLoopError",
]

_LATER = {
    "ConfigDescription": ("kbroker.config.description", "Described"),
    "DescribedGroup": ("kbroker.operations.groups", "DescribedGroup"),
    "DescribedMember": ("kbroker.operations.groups", "DescribedMember"),
    "DescribedTransaction": ("kbroker.operations.transactions.describing", "DescribedTransaction"),
    "GroupLag": ("kbroker.operations.group_lag", "GroupLag"),
    "ListedGroup": ("kbroker.coordinators.groups.coordinator", "ListedGroup"),
    "LoopThread": ("kbroker.local.loop_thread", "LoopThread"),
    "PartitionDescription": ("kbroker.operations.partitions", "PartitionDescription"),
    "PartitionLag": ("kbroker.operations.group_lag", "PartitionLag"),
    "ResetOffset": ("kbroker.operations.group_reset", "ResetOffset"),
    "ResetTo": ("kbroker.operations.group_reset", "ResetTo"),
    "Subscription": ("kbroker.local.subscription", "Subscription"),
    "Transaction": ("kbroker.local.transaction", "Transaction"),
}
"""What is loaded when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
