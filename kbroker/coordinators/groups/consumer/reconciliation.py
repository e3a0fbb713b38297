"""How a member moves from what it holds to its target, one safe step per heartbeat.

    STABLE ── newer target ──▶ (next step) ◀── partitions freed ── UNRELEASED_PARTITIONS
                                   │  ▲
                    something to   │  │ the member no longer
                    give up        ▼  │ reports it as owned
                              UNREVOKED_PARTITIONS

A step gives up before it takes: while anything is pending revocation the member stays in its epoch; then it
goes straight to the target's epoch and takes whatever of the target nobody else holds. A partition is thus
never told to two members at a time. A topic that the member no longer subscribes to is not part of its
target, even before the target is computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.consumer.member import (
    ConsumerGroupMember,
    MemberState,
    Owned,
    PartitionEpochs,
)


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What a step depends on, besides the member."""

    assignment_epoch: int
    target: TopicPartitions
    subscribed_topic_ids: Collection[bytes]
    is_held_by_another: Callable[[bytes, int], bool]
    subscription_changed: bool = False
    owned: Owned | None = None
    """What the member reports; None when the request leaves it out."""


def reconcile(member: ConsumerGroupMember, context: Reconciliation) -> ConsumerGroupMember:
    """The member after the next step, or the same object where there is none."""
    if member.state is MemberState.STABLE:
        if member.member_epoch != context.assignment_epoch:
            return _next_assignment(member, context)
        return _drop_unsubscribed(member, context) if context.subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(
        member.pending_revocation, context.owned
    ):
        return _drop_unsubscribed(member, context) if context.subscription_changed else member
    return _next_assignment(member, context)


def _still_owns(partitions: PartitionEpochs, owned: Owned | None) -> bool:
    """Whether the member may still own one of them: a member that does not say so may."""
    if owned is None:
        return True
    return any(
        not partitions[topic_id].keys().isdisjoint(owned[topic_id])
        for topic_id in partitions
        if topic_id in owned
    )


def _next_assignment(member: ConsumerGroupMember, context: Reconciliation) -> ConsumerGroupMember:
    assigned: dict[bytes, dict[int, int]] = {}
    to_revoke: dict[bytes, dict[int, int]] = {}
    to_assign: dict[bytes, list[int]] = {}
    unreleased = False
    for topic_id in context.target.keys() | member.assigned.keys():
        subscribed = topic_id in context.subscribed_topic_ids
        target = context.target.get(topic_id, _NONE) if subscribed else _NONE
        current = member.assigned.get(topic_id, {})
        for partition, epoch in current.items():
            (assigned if partition in target else to_revoke).setdefault(topic_id, {})[partition] = epoch
        for partition in target:
            if partition in current:
                continue
            if context.is_held_by_another(topic_id, partition):
                unreleased = True
            else:
                to_assign.setdefault(topic_id, []).append(partition)

    if to_revoke and _still_owns(to_revoke, context.owned):
        return _revoking(member, assigned, to_revoke)
    for topic_id, partitions in to_assign.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(partitions, context.assignment_epoch))
    return replace(
        member.with_epoch(context.assignment_epoch),
        state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
        assigned=assigned,
        pending_revocation={},
    )


def _drop_unsubscribed(member: ConsumerGroupMember, context: Reconciliation) -> ConsumerGroupMember:
    """Give up the topics that the member has just unsubscribed from, without a new target."""
    unsubscribed = member.assigned.keys() - set(context.subscribed_topic_ids)
    if not unsubscribed:
        return member
    assigned = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in unsubscribed}
    to_revoke = dict(member.pending_revocation)
    for topic_id in unsubscribed:
        to_revoke[topic_id] = {**to_revoke.get(topic_id, {}), **member.assigned[topic_id]}
    if _still_owns(to_revoke, context.owned):
        return _revoking(member, assigned, to_revoke)
    return replace(member.with_epoch(member.member_epoch), assigned=assigned)


def _revoking(
    member: ConsumerGroupMember, assigned: PartitionEpochs, to_revoke: PartitionEpochs
) -> ConsumerGroupMember:
    """The member while it still has to give up partitions: it keeps its epoch until then."""
    return replace(
        member.with_epoch(member.member_epoch),
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=assigned,
        pending_revocation=to_revoke,
    )


_NONE: frozenset[int] = frozenset()
