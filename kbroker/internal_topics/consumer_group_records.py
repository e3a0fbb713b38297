"""The records of a consumer group (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.protocol.coordinator_records import encode_key, encode_value
from kbroker.protocol.coordinator_records.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    HeldPartitions,
    TargetPartitions,
)

if TYPE_CHECKING:
    from kbroker.coordinators.groups.store import State
    from kbroker.internal_topics.topic import KeyedRecord

_STATES = {"STABLE": 0, "UNREVOKED_PARTITIONS": 1, "UNRELEASED_PARTITIONS": 2}


def records_of_group(group_id: str, state: State) -> list[KeyedRecord]:
    metadata = ConsumerGroupMetadataValue(epoch=state["group_epoch"], metadata_hash=state["metadata_hash"])
    target = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=state["assignment_epoch"], assignment_timestamp=state["assignment_timestamp_ms"]
    )
    return [
        (encode_key(ConsumerGroupMetadataKey(group_id)), encode_value(metadata)),
        (encode_key(ConsumerGroupTargetAssignmentMetadataKey(group_id)), encode_value(target)),
    ]


def records_of_member(group_id: str, member_id: str, state: State | None) -> list[KeyedRecord]:
    metadata_key = encode_key(ConsumerGroupMemberMetadataKey(group_id, member_id))
    target_key = encode_key(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id))
    current_key = encode_key(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id))
    if state is None:
        return [(current_key, None), (target_key, None), (metadata_key, None)]
    metadata = ConsumerGroupMemberMetadataValue(
        instance_id=state["instance_id"],
        rack_id=state["rack_id"],
        client_id=state["client_id"],
        client_host=state["client_host"],
        subscribed_topic_names=state["subscribed_topic_names"],
        subscribed_topic_regex=state["subscribed_topic_regex"] or "",
        rebalance_timeout_ms=state["rebalance_timeout_ms"],
        server_assignor=state["server_assignor"],
        classic_member_metadata=_classic(state.get("classic")),
    )
    target = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[TargetPartitions(*held) for held in state["target"]]
    )
    current = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=state["member_epoch"],
        previous_member_epoch=state["previous_member_epoch"],
        state=_STATES[state["state"]],
        assigned_partitions=_held(state["assigned"]),
        partitions_pending_revocation=_held(state["pending_revocation"]),
    )
    return [
        (metadata_key, encode_value(metadata)),
        (target_key, encode_value(target)),
        (current_key, encode_value(current)),
    ]


def _classic(state: dict[str, Any] | None) -> ClassicMemberMetadata | None:
    if state is None:
        return None
    protocols = [ClassicProtocol(name, metadata) for name, metadata in state["protocols"]]
    return ClassicMemberMetadata(state["session_timeout_ms"], protocols)


def _held(held: list[Any]) -> list[HeldPartitions]:
    return [
        HeldPartitions(topic_id, [partition for partition, _ in epochs], [epoch for _, epoch in epochs])
        for topic_id, epochs in held
    ]
