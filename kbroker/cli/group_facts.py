"""What commands know of consumer groups: members of both protocols, committed offsets, lag."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from kbroker.cli import connection
from kbroker.cli.errors import refused
from kbroker.cli.output import note

LAG_COLUMNS = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "committed_offset": "COMMITTED",
    "log_end_offset": "END",
    "lag": "LAG",
}
NOTHING_READ = "no group has committed an offset, and none has partitions"
_GROUP_ID_NOT_FOUND = 69


def group_lag(client: Any, arguments: argparse.Namespace, groups: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row for every partition that a group has committed or is assigned; without names, of all groups."""
    kinds = _kinds(client)
    names = groups or [name for name, group in sorted(kinds.items()) if _reads_by_offsets(group)]
    return _lag(client, _described(client, arguments, {name: _known(kinds, name) for name in names}))


def describe(client: Any, arguments: argparse.Namespace, group: str) -> dict[str, Any]:
    """State, members and lag of one group, whichever protocol it uses."""
    kind = _known(_kinds(client), group)
    described = _described(client, arguments, {group: kind})
    return {"group": group, "type": kind, **described[group], "lag": _lag(client, described)}


def _kinds(client: Any) -> dict[str, dict[str, Any]]:
    return {str(group["group_id"]): group for group in client.list_groups()}


def _reads_by_offsets(group: dict[str, Any]) -> bool:
    return group["protocol_type"] in ("", "consumer") and _kind(group) not in ("share", "streams")


def _known(kinds: dict[str, dict[str, Any]], group: str) -> str:
    """The type of a group; an error if there is none of this name."""
    if group not in kinds:
        raise refused(f"group {group}", _GROUP_ID_NOT_FOUND)
    return _kind(kinds[group])


def _kind(group: dict[str, Any]) -> str:
    return (group.get("group_type") or "classic").lower()


def _lag(client: Any, groups: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Where nothing is committed yet, every record that is there counts."""
    committed = client.list_group_offsets(list(groups)) if groups else {}
    positions: dict[tuple[str, Any], int | None] = {}
    for group, described in groups.items():
        positions |= {(group, partition): None for partition in _assigned(described)}
        positions |= {(group, at): each.offset for at, each in committed[group].items() if each.offset >= 0}
    bounds = _bounds(client, {partition.topic for _, partition in positions})
    rows = []
    for (group, partition), offset in sorted(positions.items(), key=lambda each: each[0]):
        start, end = bounds.get(partition, (None, None))
        read = start if offset is None else offset
        rows.append(
            {
                "group": group,
                "topic": partition.topic,
                "partition": partition.partition,
                "committed_offset": offset,
                "log_end_offset": end,
                "lag": None if end is None or read is None else max(0, end - read),
            }
        )
    return rows


def _assigned(described: dict[str, Any]) -> list[Any]:
    partition_type = connection.kafka().TopicPartition
    names = [name.rpartition("-") for member in described["members"] for name in member["partitions"]]
    return [partition_type(topic, int(number)) for topic, _, number in names]


def _bounds(client: Any, topics: set[str]) -> dict[tuple[str, int], tuple[int, int]]:
    """Log start and end offsets; a topic that was deleted since has none."""
    found = client.describe_topics(sorted(topics)) if topics else []
    return connection.partition_offsets(client, [topic for topic in found if not topic["error_code"]])


def _described(
    client: Any, arguments: argparse.Namespace, kinds: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """State and members of groups of the given types, in their order."""
    classic = _classic(client, [group for group, kind in kinds.items() if kind != "consumer"])
    return {
        group: _consumer(arguments, group) if kind == "consumer" else classic[group]
        for group, kind in kinds.items()
    }


def _classic(client: Any, groups: Sequence[str]) -> dict[str, dict[str, Any]]:
    described = client.describe_groups(groups) if groups else {}
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
        for group, found in described.items()
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
    from kbroker.cli.wire_client import WireClient

    if connection.logs_in(arguments):
        note(f"kbroker: members of {group} are not shown: the consumer protocol is asked without SASL")
        return {"state": "-", "assignor": "-", "members": []}
    from kbroker.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )
    from kbroker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

    address = connection.addresses(arguments.bootstrap)[0]
    tls = connection.tls_context(arguments)
    with WireClient(address, arguments.timeout, tls) as wire:
        asked = FindCoordinatorRequest(coordinator_keys=[group])
        (coordinator,) = wire.ask(asked, 4, FindCoordinatorResponse).coordinators
    with WireClient((coordinator.host, coordinator.port), arguments.timeout, tls) as wire:
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
