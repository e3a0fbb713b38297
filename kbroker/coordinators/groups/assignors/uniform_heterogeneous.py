"""The uniform assignor for members with different subscriptions.

Three steps: every member keeps what it holds and may still hold; unassigned partitions go to the least loaded
subscriber, topics with the most partitions per subscriber first; then single partitions move from the most to
the least loaded subscriber of their topic while that narrows the difference, over all topics, until nothing
moves or the rounds are used up (balance over all topics at once is not worth an unbounded search).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace

from kbroker.coordinators.groups.assignors.spec import MemberSpec, TopicPartitions

_MAX_ROUNDS = 16


def assign_heterogeneous(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, TopicPartitions]:
    builder = _Builder(members, partition_counts)
    builder.keep_current()
    builder.assign_unassigned()
    builder.balance()
    return builder.result()


class _Builder:
    def __init__(self, members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> None:
        self._members = members
        self._loads = dict.fromkeys(members, 0)
        self._subscribers: dict[bytes, list[str]] = {}
        for member_id, spec in members.items():
            for topic_id in spec.subscribed:
                self._subscribers.setdefault(topic_id, []).append(member_id)
        self._free = {topic_id: set(range(partition_counts[topic_id])) for topic_id in self._subscribers}
        self._owned: dict[bytes, dict[str, set[int]]] = {topic_id: {} for topic_id in self._subscribers}
        self._order = sorted(
            self._subscribers,
            key=lambda topic_id: (
                -partition_counts[topic_id] / len(self._subscribers[topic_id]),
                len(self._subscribers[topic_id]),
                topic_id,
            ),
        )

    def keep_current(self) -> None:
        for member_id, spec in self._members.items():
            for topic_id, partitions in spec.assigned.items():
                if topic_id in spec.subscribed and (kept := partitions & self._free[topic_id]):
                    self._free[topic_id] -= kept
                    self._owned[topic_id][member_id] = set(kept)
                    self._loads[member_id] += len(kept)

    def assign_unassigned(self) -> None:
        for topic_id in self._order:
            if not self._free[topic_id]:
                continue
            least = self._by_load(self._subscribers[topic_id])
            for partition in sorted(self._free[topic_id]):
                load, member_id = least[0]
                self._owned[topic_id].setdefault(member_id, set()).add(partition)
                self._loads[member_id] = load + 1
                heapreplace(least, (load + 1, member_id))

    def balance(self) -> None:
        topics = [topic_id for topic_id in self._order if len(self._subscribers[topic_id]) > 1]
        for _ in range(_MAX_ROUNDS):
            if not sum(self._balance_topic(topic_id) for topic_id in topics):
                return

    def _balance_topic(self, topic_id: bytes) -> int:
        """The number of partitions moved.

        Every move lowers a load and raises one that is lower by two or more.
        """
        owned = self._owned[topic_id]
        least = self._by_load(self._subscribers[topic_id])
        most = [(-self._loads[member_id], member_id) for member_id, partitions in owned.items() if partitions]
        heapify(most)
        moved = 0
        while most:
            giver = most[0][1]
            if -most[0][0] != self._loads[giver]:  # it received since: its place is another
                heapreplace(most, (-self._loads[giver], giver))
                continue
            taker = least[0][1]
            if least[0][0] != self._loads[taker]:  # it gave since
                heapreplace(least, (self._loads[taker], taker))
                continue
            if self._loads[giver] - self._loads[taker] <= 1:
                break
            partition = max(owned[giver])
            owned[giver].remove(partition)
            owned.setdefault(taker, set()).add(partition)
            self._loads[giver] -= 1
            self._loads[taker] += 1
            moved += 1
            heapreplace(least, (self._loads[taker], taker))
            if owned[giver]:
                heapreplace(most, (-self._loads[giver], giver))
            else:
                heappop(most)
        return moved

    def _by_load(self, member_ids: Iterable[str]) -> list[tuple[int, str]]:
        heap = [(self._loads[member_id], member_id) for member_id in member_ids]
        heapify(heap)
        return heap

    def result(self) -> dict[str, TopicPartitions]:
        assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in self._members}
        for topic_id, owners in self._owned.items():
            for member_id, partitions in owners.items():
                if partitions:
                    assignment[member_id][topic_id] = frozenset(partitions)
        return dict(assignment)
