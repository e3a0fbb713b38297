"""A group goes from one protocol to the other without a stop: its members keep their partitions.

Upgrade: a member of the consumer protocol joins a classic group whose members are consumers. They go on in
the new group as classic members (classic_members), in the epoch that was their generation.

Downgrade: the last member of the consumer protocol goes, and classic ones remain. Their generation is the
group epoch; unless the target was up to date they are told to join again.

Both functions only make the new group; nothing has changed until it is registered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kbroker.coordinators.groups.answers import Answers
from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.classic.members import ClassicMember, ClassicMembers
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.member import ClassicMemberMetadata, ConsumerGroupMember
from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings
from kbroker.coordinators.groups.environment import GroupEnvironment, TopicView
from kbroker.coordinators.groups.errors import GroupIdNotFound
from kbroker.protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    TopicPartition,
    read_assignment,
    read_subscription,
    write,
)
from kbroker.protocol.types import ProtocolError


def upgraded(classic: ClassicGroup, env: GroupEnvironment, settings: ConsumerGroupSettings) -> ConsumerGroup:
    """The classic group as a consumer group; GroupIdNotFound if it cannot be one."""
    if not settings.migration_policy.allows_upgrade:
        raise _cannot_upgrade(classic, "group.consumer.migration.policy forbids upgrades")
    if not classic.uses_consumer_protocol:
        raise _cannot_upgrade(classic, "its protocol type is not consumer")
    if len(classic.members) > settings.max_size:
        raise _cannot_upgrade(classic, "it has more members than group.consumer.max.size")
    group = ConsumerGroup(classic.group_id, env)
    group.group_epoch = classic.generation_id
    for member in classic.members:
        try:
            assigned = _assigned_partitions(member.assignment, classic.protocol_name, env.topics)
            subscription = read_subscription(member.metadata(classic.protocol_name) or member.protocols[0][1])
        except ProtocolError as error:
            raise _cannot_upgrade(classic, "what its members sent cannot be read") from error
        except _CustomAssignor as error:
            raise _cannot_upgrade(classic, "its assignor is unknown here") from error
        if any(
            group.is_held_by_another("", topic_id, partition)
            for topic_id, held in assigned.items()
            for partition in held
        ):
            raise _cannot_upgrade(classic, "a partition is assigned to two members")
        group.put(
            ConsumerGroupMember(
                member.member_id,
                member_epoch=classic.generation_id,
                previous_member_epoch=classic.generation_id,
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=frozenset(subscription.topics),
                assigned={
                    topic_id: dict.fromkeys(held, classic.generation_id)
                    for topic_id, held in assigned.items()
                },
                classic=ClassicMemberMetadata(member.session_timeout_ms, member.protocols),
            )
        )
        group.target[member.member_id] = assigned
    group.set_assignment_epoch(classic.generation_id)
    group.refresh_metadata()
    return group


def may_downgrade(
    group: ConsumerGroup,
    leaving: Collection[ConsumerGroupMember],
    settings: ConsumerGroupSettings,
    max_size: int,
) -> bool:
    """Whether without these members all are classic ones, and the group may become a classic group."""
    remaining = len(group.members) - len(leaving)
    remaining_classic = group.classic_member_count - sum(member.uses_classic_protocol for member in leaving)
    return (
        0 < remaining <= max_size
        and remaining == remaining_classic
        and settings.migration_policy.allows_downgrade
    )


def downgraded(
    group: ConsumerGroup, leaving: Collection[ConsumerGroupMember], env: GroupEnvironment, now_ms: int
) -> ClassicGroup:
    """The group without the leaving members as a stable classic group, everybody with the partitions of the
    target.
    """
    gone = {member.member_id for member in leaving}
    members = ClassicMembers(Answers())
    for member in group.members.values():
        if member.member_id not in gone:
            members.add(_classic_member(member))
    protocol_name = members.select_protocol()
    stored = []
    for classic_member in members:
        target = group.target.get(classic_member.member_id, {})
        version = metadata_version(classic_member.metadata(protocol_name))
        stored.append(
            {**classic_member.stored(), "assignment": encode_assignment(target, version, env.topics)}
        )
    classic = ClassicGroup(group.group_id, env, now_ms)
    classic.restore(
        {
            "generation_id": group.group_epoch,
            "protocol_type": PROTOCOL_TYPE,
            "protocol_name": protocol_name,
            "leader": members.leader,
            "state_since_ms": now_ms,
            "members": stored,
        }
    )
    return classic


def metadata_version(metadata: bytes) -> int:
    """The version of the embedded protocol that a member speaks."""
    return int.from_bytes(metadata[:2], "big", signed=True)


def encode_assignment(partitions: Mapping[bytes, Collection[int]], version: int, topics: TopicView) -> bytes:
    assignment = ConsumerProtocolAssignment(
        [
            TopicPartition(name, sorted(held))
            for topic_id, held in partitions.items()
            if (name := topics.topic_name(topic_id)) is not None
        ]
    )
    return write(assignment, max(0, min(version, _NEWEST_VERSION)))


_NEWEST_VERSION = 3

# With these, librdkafka's leader puts into a member's assignment what that member put into its subscription.
# No client reads it there. Kafka takes it for a custom assignor's and refuses to upgrade such a group.
_STICKY = ("sticky", "cooperative-sticky")


class _CustomAssignor(Exception):
    """Its user data would be lost."""


def _assigned_partitions(assignment: bytes, protocol_name: str | None, topics: TopicView) -> TopicPartitions:
    if not assignment:  # the member has joined and not synced yet
        return {}
    decoded = read_assignment(assignment)
    if decoded.user_data and protocol_name not in _STICKY:
        raise _CustomAssignor
    return {
        topic_id: frozenset(topic.partitions)
        for topic in decoded.assigned_partitions
        if (topic_id := topics.topic_id(topic.topic)) is not None
    }


def _classic_member(member: ConsumerGroupMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.classic.session_timeout_ms,
        member.rebalance_timeout_ms,
        PROTOCOL_TYPE,
        member.classic.protocols,
    )


def _cannot_upgrade(classic: ClassicGroup, reason: str) -> GroupIdNotFound:
    return GroupIdNotFound(f"the group {classic.group_id} stays classic: {reason}")
