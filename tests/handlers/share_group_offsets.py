"""What the tests of the three APIs for offsets of share groups have in common."""

from __future__ import annotations

from typing import Any

from kbroker.cluster.features import SAFE_DOWNGRADE, FeatureUpdate
from kbroker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kbroker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kbroker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from .conftest import Cluster


def alter(cluster: Cluster, group_id: str, *topics: tuple[str, dict[int, int]]) -> Any:
    """The answer; topics with offsets by partition."""
    asked = [
        AlterShareGroupOffsetsRequestTopic(
            name, [AlterShareGroupOffsetsRequestPartition(*each) for each in offsets.items()]
        )
        for name, offsets in topics
    ]
    return cluster.send(AlterShareGroupOffsetsRequest(group_id, asked), 0)


def delete(cluster: Cluster, group_id: str, *topics: str) -> Any:
    asked = [DeleteShareGroupOffsetsRequestTopic(name) for name in topics]
    return cluster.send(DeleteShareGroupOffsetsRequest(group_id, asked), 0)


def describe(
    cluster: Cluster, group_id: str, topics: dict[str, list[int]] | None = None, version: int = 1
) -> Any:
    """The group's part of the answer."""
    wanted = (
        None
        if topics is None
        else [DescribeShareGroupOffsetsRequestTopic(*topic) for topic in topics.items()]
    )
    asked = DescribeShareGroupOffsetsRequestGroup(group_id, wanted)
    (group,) = cluster.send(DescribeShareGroupOffsetsRequest([asked]), version).groups
    return group


def positions(cluster: Cluster, group_id: str, topics: dict[str, list[int]] | None = None) -> Any:
    """Start offset and lag, by topic and partition."""
    return {
        (topic.topic_name, partition.partition_index): (partition.start_offset, partition.lag)
        for topic in describe(cluster, group_id, topics).topics
        for partition in topic.partitions
    }


def beat(cluster: Cluster, group_id: str, member_id: str = "m", epoch: int = 0, *topics: str) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id, member_id, epoch, subscribed_topic_names=list(topics) or None
    )
    assert cluster.send(request, 1).error_code == 0


def switch_off(cluster: Cluster) -> None:
    cluster.broker.features.apply([FeatureUpdate("share.version", 0, SAFE_DOWNGRADE)])
