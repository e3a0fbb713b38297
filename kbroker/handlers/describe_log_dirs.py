"""DescribeLogDirs 0–5: the data directory and the size of the partitions in it (KIP-113).

There is one data directory. Partitions that do not exist are left out; one without data has size 0.
Version 3 adds the error code of the whole answer, version 4 the size of the volume (KIP-827), version 5
whether the directory is cordoned (KIP-1066), which it never is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kbroker.requests.long_requests import Steps, lazily

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: DescribeLogDirsRequest, context: RequestContext
) -> Steps[DescribeLogDirsResponse]:
    asked = request.topics
    partitions = _all_partitions(broker) if asked is None else (yield from _existing(broker, asked))
    sizes = {(size.topic, size.partition): size.size_bytes for size in broker.logs.sizes()}
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=broker.logs.path,
                topics=lazily(list(partitions.items()), lambda each: _topic(*each, sizes)),
                total_bytes=broker.logs.total_bytes(),
                usable_bytes=broker.logs.usable_bytes(),
            )
        ]
    )


def _all_partitions(broker: Broker) -> dict[str, list[int]]:
    return {topic.name: list(range(topic.partitions)) for topic in broker.topics}


def _existing(broker: Broker, asked: list[DescribableLogDirTopic]) -> Steps[dict[str, list[int]]]:
    """The partitions of the request that exist, each once."""
    partitions: dict[str, dict[int, None]] = {}
    for each in asked:
        topic = broker.topics.get(each.topic)
        if topic is not None and each.partitions:
            indexes = partitions.setdefault(topic.name, {})
            indexes.update(
                dict.fromkeys(sorted(index for index in each.partitions if 0 <= index < topic.partitions))
            )
        yield None
    return {topic: list(indexes) for topic, indexes in partitions.items() if indexes}


def _topic(name: str, indexes: list[int], sizes: dict[tuple[str, int], int]) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name=name,
        partitions=lazily(
            indexes,
            lambda index: DescribeLogDirsPartition(
                partition_index=index, partition_size=sizes.get((name, index), 0)
            ),
        ),
    )
