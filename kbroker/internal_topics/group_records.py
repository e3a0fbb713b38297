"""The records of a group of any type, of the states that the store keeps of it and of its members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.consumer import snapshot as consumer_snapshot
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.modern_snapshot import group_state
from kbroker.coordinators.groups.store import NO_TOPIC_ID, CommittedOffset, State, TopicPartition
from kbroker.protocol.coordinator_records import encode_key, encode_value
from kbroker.protocol.coordinator_records.classic_groups import (
    WRITTEN,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from kbroker.protocol.coordinator_records.offsets import (
    NEWEST,
    WITH_EXPIRY,
    OffsetCommitKey,
    OffsetCommitValue,
)

if TYPE_CHECKING:
    from types import ModuleType

    from kbroker.coordinators.groups.group import Group
    from kbroker.internal_topics.topic import KeyedRecord


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    return encode_key(OffsetCommitKey(group_id, *partition))


def offset_record(
    group_id: str, partition: TopicPartition, committed: CommittedOffset, topic_id: bytes | None
) -> KeyedRecord:
    """`topic_id`: of the topic as it is now, where the commit did not name it."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata or "",
        commit_timestamp=committed.commit_timestamp_ms,
    )
    expire_ms = committed.expire_timestamp_ms
    if expire_ms is not None:
        value.expire_timestamp = expire_ms
    elif committed.topic_id != NO_TOPIC_ID:
        value.topic_id = committed.topic_id
    elif topic_id is not None:
        value.topic_id = topic_id
    version = NEWEST if expire_ms is None else WITH_EXPIRY
    return offset_key(group_id, partition), encode_value(value, version)


def members_of(group: Group) -> list[str]:
    """Those that have states of their own."""
    typed: Any = group
    return [] if isinstance(group, ClassicGroup) else list(typed.members)


def state_of(group: Group) -> State | None:
    """As it is now. None: the group is but a name under which offsets are committed."""
    if isinstance(group, ClassicGroup):
        state = group.stored()
        return state if state["generation_id"] or state["members"] else None
    typed: Any = group
    if group.type == "streams":
        from kbroker.coordinators.groups.streams import snapshot

        return snapshot.group_state(typed)
    return group_state(typed)


def member_state_of(group: Group, member_id: str) -> State | None:
    if isinstance(group, ConsumerGroup):
        return consumer_snapshot.member_state(group, member_id)
    typed: Any = group
    if group.type == "share":
        from kbroker.coordinators.groups.share import snapshot as share_snapshot

        return share_snapshot.member_state(typed, member_id)
    from kbroker.coordinators.groups.streams import snapshot as streams_snapshot

    return streams_snapshot.member_state(typed, member_id)


def records_of_group(type: str, group_id: str, state: State) -> list[KeyedRecord]:
    if type == ClassicGroup.type:
        return [_classic(group_id, state)]
    records: list[KeyedRecord] = _module(type).records_of_group(group_id, state)
    return records


def records_of_member(type: str, group_id: str, member_id: str, state: State | None) -> list[KeyedRecord]:
    """None: tombstones, the member is gone."""
    records: list[KeyedRecord] = _module(type).records_of_member(group_id, member_id, state)
    return records


def _module(type: str) -> ModuleType:
    if type == ConsumerGroup.type:
        from kbroker.internal_topics import consumer_group_records

        return consumer_group_records
    if type == "share":
        from kbroker.internal_topics import share_group_records

        return share_group_records
    from kbroker.internal_topics import streams_group_records

    return streams_group_records


def _classic(group_id: str, state: State) -> KeyedRecord:
    protocol_name = state["protocol_name"]
    members = [
        MemberMetadata(
            member["member_id"],
            member["group_instance_id"],
            member["client_id"],
            member["client_host"],
            member["rebalance_timeout_ms"],
            member["session_timeout_ms"],
            next((metadata for name, metadata in member["protocols"] if name == protocol_name), b""),
            member["assignment"],
        )
        for member in state["members"]
    ]
    value = GroupMetadataValue(
        protocol_type=state["protocol_type"] or "",
        generation=state["generation_id"],
        protocol=protocol_name,
        leader=state["leader"] or None,
        current_state_timestamp=state["state_since_ms"],
        members=members,
    )
    return encode_key(GroupMetadataKey(group_id)), encode_value(value, WRITTEN)
