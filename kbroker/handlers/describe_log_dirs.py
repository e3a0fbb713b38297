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

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.context import RequestContext


def handle(
    broker: Broker, request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    partitions = _all_partitions(broker) if request.topics is None else _existing(broker, request.topics)
    sizes = {(size.topic, size.partition): size.size_bytes for size in broker.logs.sizes()}
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=broker.logs.path,
                topics=[
                    DescribeLogDirsTopic(
                        name=topic,
                        partitions=[
                            DescribeLogDirsPartition(
                                partition_index=index, partition_size=sizes.get((topic, index), 0)
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in partitions.items()
                ],
                total_bytes=broker.logs.total_bytes(),
                usable_bytes=broker.logs.usable_bytes(),
            )
        ]
    )


def _all_partitions(broker: Broker) -> dict[str, list[int]]:
    return {topic.name: list(range(topic.partitions)) for topic in broker.topics}


def _existing(broker: Broker, asked: list[DescribableLogDirTopic]) -> dict[str, list[int]]:
    """The partitions of the request that exist, each once."""
    partitions: dict[str, list[int]] = {}
    for each in asked:
        topic = broker.topics.get(each.topic)
        if topic is not None:
            indexes = partitions.setdefault(topic.name, [])
            indexes += sorted(set(each.partitions).intersection(range(topic.partitions)).difference(indexes))
    return {topic: indexes for topic, indexes in partitions.items() if indexes}
