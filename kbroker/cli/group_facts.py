"""What commands know of consumer groups: members of both protocols, committed offsets, lag."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from kbroker.cli import connection
from kbroker.cli.errors import refused

LAG_COLUMNS = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "committed_offset": "COMMITTED",
    "log_end_offset": "END",
    "lag": "LAG",
}
_GROUP_ID_NOT_FOUND = 69


def group_lag(client: Any, groups: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row for every partition that a group has committed; without names, of all groups."""
    names = list(groups) or sorted(
        group["group_id"]
        for group in client.list_groups()
        if group["protocol_type"] in ("", "consumer")
        and group.get("group_type", "") not in ("share", "streams")
    )
    if not names:
        return []
    committed = client.list_group_offsets(names)
    ends = _ends(client, {partition for offsets in committed.values() for partition in offsets})
    rows = []
    for name in names:
        for partition, position in sorted(committed[name].items()):
            if position.offset < 0:
                continue
            end = ends.get(partition)
            rows.append(
                {
                    "group": name,
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "committed_offset": position.offset,
                    "log_end_offset": end,
                    "lag": None if end is None else max(0, end - position.offset),
                }
            )
    return rows


def _ends(client: Any, partitions: set[Any]) -> dict[Any, int]:
    """Log end offsets; a topic that was deleted since has none."""
    existing = set(client.list_topics())
    asked = dict.fromkeys(
        (partition for partition in partitions if partition.topic in existing),
        connection.kafka().admin.OffsetSpec.LATEST,
    )
    found = client.list_partition_offsets(asked) if asked else {}
    return {partition: position.offset for partition, position in found.items()}


def describe(client: Any, arguments: argparse.Namespace, group: str) -> dict[str, Any]:
    """State, members and lag of one group, whichever protocol it uses."""
    kinds = {each["group_id"]: each.get("group_type", "classic") for each in client.list_groups()}
    if group not in kinds:
        raise refused(f"group {group}", _GROUP_ID_NOT_FOUND)
    kind = (kinds[group] or "classic").lower()
    described = _consumer(arguments, group) if kind == "consumer" else _classic(client, group)
    return {"group": group, "type": kind, **described, "lag": group_lag(client, [group])}


def _classic(client: Any, group: str) -> dict[str, Any]:
    found = client.describe_groups([group])[group]
    return {
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


def _classic_partitions(assignment: Any) -> list[str]:
    """ "topic-partition" of each; none of members whose assignment is not a consumer's."""
    if not isinstance(assignment, dict):
        return []
    return [
        f"{each['topic']}-{partition}"
        for each in assignment["assigned_partitions"]
        for partition in sorted(each["partitions"])
    ]


def _consumer(arguments: argparse.Namespace, group: str) -> dict[str, Any]:
    """By ConsumerGroupDescribe (KIP-848), which kafka-python does not have."""
    from kbroker.cli.wire import WireClient
    from kbroker.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )
    from kbroker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

    address = connection.addresses(arguments.bootstrap)[0]
    with WireClient(address, arguments.timeout) as wire:
        asked = FindCoordinatorRequest(coordinator_keys=[group])
        (coordinator,) = wire.ask(asked, 4, FindCoordinatorResponse).coordinators
    with WireClient((coordinator.host, coordinator.port), arguments.timeout) as wire:
        asked_group = ConsumerGroupDescribeRequest(group_ids=[group])
        (found,) = wire.ask(asked_group, 0, ConsumerGroupDescribeResponse).groups
    if found.error_code:
        raise refused(f"group {group}", found.error_code, found.error_message)
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
