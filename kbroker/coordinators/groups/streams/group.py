"""A streams group (KIP-1071): its topology, its members, the tasks they move to, and who holds which.

    Empty        no members
    NotReady     topics that the topology needs are missing, or do not fit together
    Assigning    the target is older than the group epoch
    Reconciling  not all members have reached the target
    Stable       all have
    Dead         deleted, or replaced by a group of another type

Invariant: a task has at most one member that holds it as active, be it assigned or pending revocation. `put`
refuses a second one.
"""

from __future__ import annotations

import hashlib

from kbroker.coordinators.groups.classic.initial_delay import InitialDelay
from kbroker.coordinators.groups.committing_group import CommittingGroup
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.streams.configured_topology import ConfiguredTopology
from kbroker.coordinators.groups.streams.member import StreamsMember
from kbroker.coordinators.groups.streams.tasks import NO_TASKS, TaskId, Tasks
from kbroker.coordinators.groups.streams.topology import Topology

NOT_VALIDATED = -1


class StreamsGroup(CommittingGroup[StreamsMember, Tasks]):
    type = "streams"
    protocol_type = "streams"

    def __init__(self, group_id: str, env: GroupEnvironment, topology: Topology) -> None:
        super().__init__(group_id, env, nothing=NO_TASKS)
        self.assignment_epoch = 1
        self.topology = topology
        self.topics = topology.topics()
        self.configured: ConfiguredTopology | None = None
        """None: the topics are to be looked at."""
        self.validated_epoch = NOT_VALIDATED
        """The topology epoch for which the topics were right, when they were last looked at."""
        self.standby_replicas = 0
        """What the target was made for."""
        self.shutdown_asked_by: str | None = None
        self.endpoint_information_epoch = 0
        self._initial_delay: InitialDelay | None = None
        self._delayed_until_ms = 0
        self._inputs = topology.inputs()
        self._topics = env.topics
        self._reconciled = 0
        self._active: dict[TaskId, str] = {}
        self._processes: dict[TaskId, dict[str, str]] = {}  # member → process, in whichever role

    # what it is

    @property
    def state(self) -> str:
        if self._closed:
            return "Dead"
        if not self.members:
            return "Empty"
        if self.validated_epoch == NOT_VALIDATED:
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        return "Stable" if self._reconciled == len(self.members) else "Reconciling"

    def is_subscribed_to(self, topic: str) -> bool:
        return not self.is_empty and topic in self._inputs

    def assignable(self) -> int:
        return 0 if self.configured is None else sum(self.configured.task_counts.values())

    def is_active(self, task: TaskId) -> bool:
        return task in self._active

    def is_in_process(self, process_id: str, task: TaskId) -> bool:
        """Whether a member of the process holds the task, in whichever role."""
        holders = self._processes.get(task)
        return holders is not None and process_id in holders.values()

    # how it changes

    def put(self, member: StreamsMember) -> None:
        old = self.members.get(member.member_id)
        if old is member:
            return
        self._release(old)
        self._hold(member)
        super().put(member)

    def remove(self, member_id: str) -> None:
        self._release(self.members[member_id])
        super().remove(member_id)
        if not self.members:
            self.shutdown_asked_by = None
            self._initial_delay = None

    def set_assignment_epoch(self, assignment_epoch: int) -> None:
        super().set_assignment_epoch(assignment_epoch)
        self._reconciled = sum(member.is_reconciled_to(assignment_epoch) for member in self.members.values())

    def topics_hash(self) -> int:
        """Differs when a topic of the topology has appeared, vanished, been made anew or grown."""
        digest = hashlib.blake2b(digest_size=8)
        for name in sorted(self.topics):
            topic_id, count = self._topics.topic_id(name), self._topics.partition_count(name)
            if topic_id is not None and count is not None:
                digest.update(topic_id)
                digest.update(count.to_bytes(4, "big"))
        # SQLite's and Kafka's integers have a sign.
        return int.from_bytes(digest.digest(), "big", signed=True)

    # the first assignment

    def begin_initial_delay(self, configured_ms: int | None, rebalance_timeout_ms: int, now_ms: int) -> None:
        """The first member has come to an empty group: others may be on their way."""
        if configured_ms != 0:
            self._initial_delay = InitialDelay(configured_ms)
            self._delayed_until_ms = self._initial_delay.begin(now_ms, rebalance_timeout_ms)

    def member_came(self, now_ms: int) -> None:
        if self._initial_delay is not None and now_ms < self._delayed_until_ms:
            later_ms = self._initial_delay.member_came(now_ms)
            self._delayed_until_ms = self._delayed_until_ms if later_ms is None else later_ms

    def waits_for_more(self, now_ms: int) -> bool:
        if self._initial_delay is not None and now_ms >= self._delayed_until_ms:
            self._initial_delay = None
        return self._initial_delay is not None

    # offsets

    def _assigned_at(self, member: StreamsMember, topic_id: bytes, partition: int) -> int | None:
        topic = self._topics.topic_name(topic_id)
        for subtopology_id, subtopology in self.topology.subtopologies.items():
            if topic in subtopology.inputs:
                epoch = member.active_epochs.get(TaskId(subtopology_id, partition))
                if epoch is not None:
                    return epoch
        return None

    # internals

    def _count(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        for member, step in ((old, -1), (new, 1)):
            if member is not None:
                self._reconciled += step * member.is_reconciled_to(self.assignment_epoch)

    def _hold(self, member: StreamsMember) -> None:
        held = member.assigned | member.pending_revocation
        for task in held.active:
            if self._active.setdefault(task, member.member_id) != member.member_id:
                raise AssertionError(f"the task {task} is active at a second member")
        for task in held.all():
            self._processes.setdefault(task, {})[member.member_id] = member.process_id

    def _release(self, member: StreamsMember | None) -> None:
        if member is None:
            return
        held = member.assigned | member.pending_revocation
        for task in held.active:
            del self._active[task]
        for task in held.all():
            holders = self._processes.get(task, {})
            holders.pop(member.member_id, None)
            if not holders:
                self._processes.pop(task, None)
