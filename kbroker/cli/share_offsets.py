"""Where share groups are in their partitions (KIP-932): told, and set."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kbroker.cli.errors import refused
from kbroker.cli.wire_session import coordinators

Partition = tuple[str, int]


class SharePosition(NamedTuple):
    """None is what the broker does not know: Kafka, before the first acknowledgement."""

    start_offset: int | None
    lag: int | None


def share_positions(
    arguments: argparse.Namespace, groups: Sequence[str]
) -> dict[str, dict[Partition, SharePosition]]:
    """By group, of the partitions that each has begun."""
    from kbroker.protocol.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
        DescribeShareGroupOffsetsResponse,
    )

    positions: dict[str, dict[Partition, SharePosition]] = {group: {} for group in groups}
    for wire, names in coordinators(arguments, groups):
        version = wire.newest_version(DescribeShareGroupOffsetsRequest)  # the lag comes with version 1
        wanted = [DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in names]
        asked = DescribeShareGroupOffsetsRequest(groups=wanted)
        for group in wire.ask(asked, version, DescribeShareGroupOffsetsResponse).groups:
            if group.error_code:
                raise refused(f"group {group.group_id}", group.error_code, group.error_message)
            for topic in group.topics:
                for each in topic.partitions:
                    _check(group.group_id, topic.topic_name, each)
                    positions[group.group_id][topic.topic_name, each.partition_index] = SharePosition(
                        _known(each.start_offset), _known(each.lag)
                    )
    return positions


def _check(group: str, topic: str, told: Any) -> None:
    """Whether an answer about a partition is a refusal."""
    if told.error_code:
        what = f"{topic} {told.partition_index} of group {group}"
        raise refused(what, told.error_code, told.error_message)


def _known(number: int) -> int | None:
    return None if number == -1 else number


def set_share_offsets(arguments: argparse.Namespace, group: str, targets: Mapping[Partition, int]) -> None:
    """The start offsets of a group that has no members."""
    from kbroker.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
        AlterShareGroupOffsetsResponse,
    )

    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, partition), offset in targets.items():
        topics.setdefault(topic, []).append(
            AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
        )
    asked = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )
    for wire, _ in coordinators(arguments, [group]):
        answer = wire.ask(asked, 0, AlterShareGroupOffsetsResponse)
        if answer.error_code:
            raise refused(f"group {group}", answer.error_code, answer.error_message)
        for told in answer.responses:
            for each in told.partitions:
                _check(group, told.topic_name, each)
