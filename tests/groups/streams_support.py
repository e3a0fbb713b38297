"""A world of streams groups for tests: topics, a registry, the store in memory, time that the test moves."""

from __future__ import annotations

from typing import Any

from consumer_support import FakeTopics

from kbroker.catalog.memory_groups import MemoryGroupStore
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import RebalanceInProgress
from kbroker.coordinators.groups.group import Group
from kbroker.coordinators.groups.store import GroupStore
from kbroker.coordinators.groups.streams.configured_topology import StatusCode
from kbroker.coordinators.groups.streams.group import StreamsGroup
from kbroker.coordinators.groups.streams.groups import StreamsGroups
from kbroker.coordinators.groups.streams.requests import HeartbeatRequest, HeartbeatResult
from kbroker.coordinators.groups.streams.settings import StreamsGroupSettings
from kbroker.coordinators.groups.streams.tasks import Tasks, task_ids
from kbroker.coordinators.groups.streams.topology import InternalTopic, Subtopology, Topology
from kbroker.pending import Pending

Partitions = dict[str, list[int]]
AT_ONCE = StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0)


def internal(*names: str, partitions: int = 0) -> dict[str, InternalTopic]:
    return {name: InternalTopic(name, partitions) for name in names}


def sub(
    subtopology_id: str = "0",
    *sources: str,
    changelogs: tuple[str, ...] = (),
    repartitions: dict[str, InternalTopic] | None = None,
    sinks: tuple[str, ...] = (),
    copartitioned: tuple[set[str], ...] = (),
) -> Subtopology:
    return Subtopology(
        subtopology_id,
        frozenset(sources),
        repartitions or {},
        frozenset(sinks),
        internal(*changelogs),
        frozenset(map(frozenset, copartitioned)),
    )


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch, {each.subtopology_id: each for each in subtopologies})


def tasks(active: Partitions | None = None, standby: Partitions | None = None) -> Tasks:
    return Tasks(task_ids((active or {}).items()), task_ids((standby or {}).items()))


class World:
    """The registry, and the clock."""

    def __init__(
        self,
        topics: FakeTopics,
        settings: StreamsGroupSettings = AT_ONCE,
        store: GroupStore | None = None,
        now_ms: int = 1_000_000,
    ) -> None:
        self.topics = topics
        self.settings = settings
        self.store = store or MemoryGroupStore()
        self.env = GroupEnvironment(self.store, topics, lambda: "nobody needs it")
        self.groups: dict[str, Group] = {}
        self.streams_groups = StreamsGroups(self.env, self, lambda group_id: self.settings)
        self.now_ms = now_ms
        for stored in self.store.load().groups:
            self.groups[stored.group_id] = self.streams_groups.restore(stored, now_ms)

    def replace(self, group: Group) -> None:
        if group.group_id in self.groups:
            self.groups[group.group_id].close(RebalanceInProgress())
        self.groups[group.group_id] = group

    def pass_time(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.env.timers.fire(self.now_ms)

    def restarted(self) -> World:
        return World(self.topics, self.settings, self.store, self.now_ms)

    def group(self) -> StreamsGroup:
        return self.streams_groups.group("g")

    def create_topic(self, name: str, partitions: int) -> None:
        self.topics.create(name, partitions)
        self.streams_groups.topic_changed(name)

    def grow_topic(self, name: str, partitions: int) -> None:
        self.topics.grow(name, partitions)
        self.streams_groups.topic_changed(name)

    def delete_topic(self, name: str) -> None:
        self.topics.delete(name)
        self.streams_groups.topic_changed(name)

    def heartbeat(
        self, member_id: str, member_epoch: int, owned: Tasks | None = None, **fields: Any
    ) -> HeartbeatResult:
        if owned is not None:
            fields = {"active": owned.active, "standby": owned.standby, "warmup": owned.warmup, **fields}
        request = HeartbeatRequest("g", member_id, member_epoch, **fields)
        result = self.streams_groups.heartbeat(request, self.now_ms)
        assert not isinstance(result, Pending)
        return result

    def join(self, member_id: str, *subtopologies: Subtopology, **fields: Any) -> HeartbeatResult:
        """In a process of its own, with one subtopology that reads t unless told otherwise."""
        given = {
            "topology": topology(*(subtopologies or (sub("0", "t"),))),
            "rebalance_timeout_ms": 60_000,
            "process_id": f"process of {member_id}",
            **fields,
        }
        return self.heartbeat(member_id, 0, Tasks(), **given)


def codes(result: HeartbeatResult) -> list[StatusCode]:
    return [status.code for status in result.statuses]
