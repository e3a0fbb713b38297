"""The records of a share group (KIP-932), but for what its share partitions are at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.coordinator_records import encode_key, encode_value
from kbroker.protocol.coordinator_records.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)

if TYPE_CHECKING:
    from kbroker.coordinators.groups.store import State
    from kbroker.internal_topics.topic import KeyedRecord


def records_of_group(group_id: str, state: State) -> list[KeyedRecord]:
    metadata = ShareGroupMetadataValue(epoch=state["group_epoch"], metadata_hash=state["metadata_hash"])
    target = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=state["assignment_epoch"], assignment_timestamp=state["assignment_timestamp_ms"]
    )
    return [
        (encode_key(ShareGroupMetadataKey(group_id)), encode_value(metadata)),
        (encode_key(ShareGroupTargetAssignmentMetadataKey(group_id)), encode_value(target)),
    ]


def records_of_member(group_id: str, member_id: str, state: State | None) -> list[KeyedRecord]:
    metadata_key = encode_key(ShareGroupMemberMetadataKey(group_id, member_id))
    target_key = encode_key(ShareGroupTargetAssignmentMemberKey(group_id, member_id))
    current_key = encode_key(ShareGroupCurrentMemberAssignmentKey(group_id, member_id))
    if state is None:
        return [(current_key, None), (target_key, None), (metadata_key, None)]
    metadata = ShareGroupMemberMetadataValue(
        rack_id=state["rack_id"],
        client_id=state["client_id"],
        client_host=state["client_host"],
        subscribed_topic_names=state["subscribed_topic_names"],
    )
    target = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[TopicPartitions(*held) for held in state["target"]]
    )
    current = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=state["member_epoch"],
        previous_member_epoch=state["previous_member_epoch"],
        state=0,  # its members are always stable
        assigned_partitions=[TopicPartitions(*held) for held in state["assigned"]],
    )
    return [
        (metadata_key, encode_value(metadata)),
        (target_key, encode_value(target)),
        (current_key, encode_value(current)),
    ]
