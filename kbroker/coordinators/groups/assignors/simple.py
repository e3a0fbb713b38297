"""The simple assignor of share groups (KIP-932): several members may have the same partition.

Every partition goes to as many members as are needed for all to have one: ceil(members / partitions). So
there are that many times the partitions to give, and each member gets an even share of them. Balance comes
first; as far as it allows, members keep what they have. Where members subscribe to different topics, this is
done topic by topic, and who has less in all is first in line for a larger share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kbroker.coordinators.groups.assignors.spec import MemberSpec, TopicPartitions

Slot = tuple[int, bytes]
"""A partition: its number comes first, so that a member gets partitions of several topics."""


def assign_simple(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, TopicPartitions]:
    given: dict[str, set[Slot]] = {member_id: set() for member_id in members}
    for topic_ids, subscribers in _parts(members):
        partitions = sorted(
            (number, topic) for topic in topic_ids for number in range(partition_counts[topic])
        )
        if partitions:
            shared = frozenset(topic_ids)
            held = {
                member_id: {
                    (number, topic)
                    for topic, numbers in members[member_id].assigned.items()
                    if topic in shared
                    for number in numbers
                }
                for member_id in sorted(subscribers, key=lambda member_id: len(given[member_id]))
            }
            for member_id, slots in _shared(held, partitions).items():
                given[member_id] |= slots
    return {member_id: _by_topic(slots) for member_id, slots in given.items()}


def _parts(members: Mapping[str, MemberSpec]) -> Collection[tuple[Collection[bytes], Sequence[str]]]:
    """Topics that are shared out together, and among whom."""
    subscriptions = {spec.subscribed for spec in members.values()}
    if len(subscriptions) == 1:
        return [(sorted(subscriptions.pop()), list(members))]
    return [
        ((topic_id,), [member_id for member_id, spec in members.items() if topic_id in spec.subscribed])
        for topic_id in sorted(frozenset[bytes]().union(*subscriptions))
    ]


def _shared(held: dict[str, set[Slot]], partitions: Sequence[Slot]) -> dict[str, set[Slot]]:
    """What each member gets. `held`: what it has now, and who comes first for a larger share."""
    sharing = -(-len(held) // len(partitions))
    room = dict.fromkeys(partitions, sharing)
    kept: dict[str, set[Slot]] = {}
    # Where more have a partition than are to share it, those who have the most give it up.
    for member_id in sorted(held, key=lambda member_id: len(held[member_id])):
        kept[member_id] = {slot for slot in held[member_id] if room.get(slot, 0) > 0}
        for slot in kept[member_id]:
            room[slot] -= 1

    quota, extra = divmod(sharing * len(partitions), len(held))
    shares: dict[str, int] = {}
    # The larger share goes first to those who hold as much already: moving it would be for nothing.
    for member_id in sorted(held, key=lambda member_id: len(kept[member_id]) <= quota):
        shares[member_id] = quota + (extra > 0)
        extra -= extra > 0
        for slot in sorted(kept[member_id])[shares[member_id] :]:
            kept[member_id].remove(slot)
            room[slot] += 1

    # The partitions that the fewest have come first.
    free = [slot for count in range(sharing, 0, -1) for slot in partitions if room[slot] >= count]
    free.reverse()
    for member_id, share in shares.items():
        _fill(kept, member_id, share, free)
    return kept


def _fill(kept: dict[str, set[Slot]], member_id: str, share: int, free: list[Slot]) -> None:
    """Give the member partitions from the end of the list, up to its share."""
    own = kept[member_id]
    passed_over: list[Slot] = []
    while len(own) < share and free:
        slot = free.pop()
        if slot in own:
            passed_over.append(slot)
        else:
            own.add(slot)
    while len(own) < share:
        # It has all that is left. At least two others lack this one and have one that it has not.
        slot = passed_over.pop()
        other, exchanged = next(
            (other, candidate)
            for other, theirs in kept.items()
            if slot not in theirs
            for candidate in sorted(theirs)
            if candidate not in own
        )
        kept[other].remove(exchanged)
        kept[other].add(slot)
        own.add(exchanged)
    free += reversed(passed_over)


def _by_topic(slots: set[Slot]) -> TopicPartitions:
    topics: dict[bytes, set[int]] = {}
    for partition, topic_id in slots:
        topics.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
