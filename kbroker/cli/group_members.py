"""State and members of groups of every kind, as commands show them.

Classic groups are asked by kafka-python; consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071),
which it does not know, on kbroker's own codec.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbroker.cli.errors import refused

if TYPE_CHECKING:
    from kbroker.cli.wire_client import WireClient

Described = dict[str, Any]


def described(client: Any, arguments: argparse.Namespace, kinds: Mapping[str, str]) -> dict[str, Described]:
    """State and members of groups of the given types."""
    found = _classic(client, [group for group, kind in kinds.items() if kind not in _ASKED])
    others = [group for group, kind in kinds.items() if kind in _ASKED]
    if others:
        from kbroker.cli.wire_session import coordinators

        for wire, names in coordinators(arguments, others):
            for kind, ask in _ASKED.items():
                wanted = [name for name in names if kinds[name] == kind]
                if wanted:
                    found |= ask(wire, wanted)
    return found


def _classic(client: Any, groups: Sequence[str]) -> dict[str, Described]:
    answer = client.describe_groups(groups) if groups else {}
    return {
        group: {
            "state": found["group_state"],
            "assignor": found["protocol_data"],
            "members": [
                {
                    "member_id": member["member_id"],
                    "client_id": member["client_id"],
                    "host": member["client_host"],
                    "partitions": _classic_partitions(member["member_assignment"]),
                }
                for member in found["members"]
            ],
        }
        for group, found in answer.items()
    }


def _classic_partitions(assignment: Any) -> list[str]:
    """ "topic-partition" of each; none of members whose assignment is not a consumer's."""
    if not isinstance(assignment, dict):
        return []
    return [
        f"{each['topic']}-{partition}"
        for each in assignment["assigned_partitions"]
        for partition in sorted(each["partitions"])
    ]


def _consumer(wire: WireClient, groups: list[str]) -> dict[str, Described]:
    from kbroker.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )

    answer = wire.ask(ConsumerGroupDescribeRequest(group_ids=groups), 0, ConsumerGroupDescribeResponse)
    return {found.group_id: _with_partitions(found) for found in _without_error(answer)}


def _share(wire: WireClient, groups: list[str]) -> dict[str, Described]:
    from kbroker.protocol.messages.share_group_describe import (
        ShareGroupDescribeRequest,
        ShareGroupDescribeResponse,
    )

    answer = wire.ask(ShareGroupDescribeRequest(group_ids=groups), 1, ShareGroupDescribeResponse)
    return {found.group_id: _with_partitions(found) for found in _without_error(answer)}


def _with_partitions(found: Any) -> Described:
    """A group whose members are assigned partitions."""
    return {
        "state": found.group_state,
        "assignor": found.assignor_name,
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.client_host,
                "partitions": [
                    f"{topic.topic_name}-{partition}"
                    for topic in member.assignment.topic_partitions
                    for partition in sorted(topic.partitions)
                ],
            }
            for member in found.members
        ],
    }


def _streams(wire: WireClient, groups: list[str]) -> dict[str, Described]:
    from kbroker.protocol.messages.streams_group_describe import (
        StreamsGroupDescribeRequest,
        StreamsGroupDescribeResponse,
    )

    answer = wire.ask(StreamsGroupDescribeRequest(group_ids=groups), 0, StreamsGroupDescribeResponse)
    return {found.group_id: _with_tasks(found) for found in _without_error(answer)}


def _with_tasks(found: Any) -> Described:
    """A group whose members are assigned tasks: a partition of each topic that a subtopology reads."""
    subtopologies = (found.topology.subtopologies or []) if found.topology is not None else []
    read = {
        each.subtopology_id: each.source_topics + [topic.name for topic in each.repartition_source_topics]
        for each in subtopologies
    }
    return {
        "state": found.group_state,
        "topology_epoch": None if found.topology is None else found.topology.epoch,
        "subtopologies": [
            {
                "subtopology_id": each.subtopology_id,
                "source_topics": each.source_topics,
                "repartition_source_topics": [topic.name for topic in each.repartition_source_topics],
                "state_changelog_topics": [topic.name for topic in each.state_changelog_topics],
            }
            for each in subtopologies
        ],
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.client_host,
                "process_id": member.process_id,
                "active_tasks": _task_names(member.assignment.active_tasks),
                "standby_tasks": _task_names(member.assignment.standby_tasks),
                "warmup_tasks": _task_names(member.assignment.warmup_tasks),
                "partitions": [
                    f"{topic}-{partition}"
                    for task in member.assignment.active_tasks
                    for topic in read.get(task.subtopology_id, ())
                    for partition in sorted(task.partitions)
                ],
            }
            for member in found.members
        ],
    }


def _task_names(tasks: Any) -> list[str]:
    """As Kafka Streams writes them."""
    return [f"{each.subtopology_id}_{partition}" for each in tasks for partition in sorted(each.partitions)]


def _without_error(answer: Any) -> list[Any]:
    for found in answer.groups:
        if found.error_code:
            raise refused(f"group {found.group_id}", found.error_code, found.error_message)
    return list(answer.groups)


_ASKED: dict[str, Callable[[WireClient, list[str]], dict[str, Described]]] = {
    "consumer": _consumer,
    "share": _share,
    "streams": _streams,
}
