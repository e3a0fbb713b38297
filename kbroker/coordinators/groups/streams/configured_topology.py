"""A topology held against the topics that there are: how wide its internal topics have to be, which of them
are missing, how many tasks each subtopology has, and what keeps the group from running.

A repartition topic is as wide as its topology says, else as the widest topic that its writers read; topics of
a copartition group are equal. A changelog topic has a partition for each task of its subtopology. A
subtopology has as many tasks as its widest input has partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from kbroker.coordinators.groups.errors import StreamsInvalidTopology
from kbroker.coordinators.groups.streams.repartition_widths import widths_by_writers
from kbroker.coordinators.groups.streams.tasks import TaskId
from kbroker.coordinators.groups.streams.topology import InternalTopic, Subtopology, Topology

PartitionCount = Callable[[str], int | None]
"""How many partitions an existing topic has."""


class StatusCode(IntEnum):
    """What keeps an application from running as it should."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    code: StatusCode
    detail: str


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    problem: Status | None = None
    """None: the group can run."""
    subtopologies: Mapping[str, Subtopology] = field(default_factory=dict)
    """With the decided widths. None of them where widths cannot be decided."""
    task_counts: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[InternalTopic, ...] = ()
    """Internal topics to make."""

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    def tasks(self) -> list[TaskId]:
        return [
            TaskId(subtopology, partition)
            for subtopology, count in self.task_counts.items()
            for partition in range(count)
        ]


def configure(topology: Topology, partition_count: PartitionCount) -> ConfiguredTopology:
    """Raises StreamsInvalidTopology if widths can never be decided."""
    subtopologies = topology.subtopologies.values()
    sources = frozenset[str]().union(*(each.source_topics for each in subtopologies))
    absent = sorted(name for name in sources if partition_count(name) is None)
    if absent:
        return _stopped(StatusCode.MISSING_SOURCE_TOPICS, f"these source topics do not exist: {_few(absent)}")
    widths = _Widths(topology, partition_count)
    try:
        widths.decide()
    except _WrongWidth as error:
        return _stopped(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, str(error))
    configured = {each.subtopology_id: widths.applied_to(each) for each in subtopologies}
    internal = {
        name: topic
        for each in configured.values()
        for name, topic in (*each.repartition_source_topics.items(), *each.state_changelog_topics.items())
    }
    for name, topic in sorted(internal.items()):
        found = partition_count(name)
        if found is not None and found != topic.partitions:
            return _stopped(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"the topic {name} has {found} partitions, and has to have {topic.partitions}",
            )
    missing = tuple(topic for name, topic in sorted(internal.items()) if partition_count(name) is None)
    problem = None
    if missing:
        names = _few([topic.name for topic in missing])
        problem = Status(StatusCode.MISSING_INTERNAL_TOPICS, f"these internal topics do not exist: {names}")
    return ConfiguredTopology(
        problem, configured, {id_: widths.tasks_of(each) for id_, each in configured.items()}, missing
    )


class _WrongWidth(Exception):
    """Topics that do not fit together."""


class _Widths:
    def __init__(self, topology: Topology, partition_count: PartitionCount) -> None:
        self._subtopologies = topology.subtopologies.values()
        self._partition_count = partition_count
        self._repartitions = {
            name: topic
            for each in self._subtopologies
            for name, topic in each.repartition_source_topics.items()
        }
        self._decided = {
            name: topic.partitions for name, topic in self._repartitions.items() if topic.partitions
        }

    def decide(self) -> None:
        self._follow_writers()
        for each in self._subtopologies:
            for group in each.copartition_groups:
                self._make_equal(group)

    def of(self, topic: str) -> int:
        """What is there counts before what was decided."""
        width = self._known(topic)
        if width is None:
            raise StreamsInvalidTopology(f"the number of partitions of {topic} cannot be decided")
        return width

    def tasks_of(self, subtopology: Subtopology) -> int:
        if not subtopology.inputs:
            raise StreamsInvalidTopology(f"the subtopology {subtopology.subtopology_id} reads no topic")
        return max(map(self.of, subtopology.inputs))

    def applied_to(self, subtopology: Subtopology) -> Subtopology:
        tasks = self.tasks_of(subtopology)
        return replace(
            subtopology,
            repartition_source_topics={
                name: replace(topic, partitions=self._decided[name])
                for name, topic in subtopology.repartition_source_topics.items()
            },
            state_changelog_topics={
                name: replace(topic, partitions=tasks)
                for name, topic in subtopology.state_changelog_topics.items()
            },
        )

    def _known(self, topic: str) -> int | None:
        found = self._partition_count(topic)
        return self._decided.get(topic) if found is None else found

    def _follow_writers(self) -> None:
        undecided = [name for name in self._repartitions if name not in self._decided]

        def width_of(topic: str) -> int | None:
            return self._decided.get(topic) or self._partition_count(topic)

        found = widths_by_writers(undecided, self._subtopologies, width_of)
        left = [name for name in undecided if name not in found]
        if left:
            raise StreamsInvalidTopology(
                f"the number of partitions of these repartition topics cannot be decided: {_few(left)}"
            )
        self._decided.update(found)

    def _make_equal(self, group: frozenset[str]) -> None:
        internal = sorted(name for name in group if name in self._repartitions)
        outside = sorted(group.difference(internal))
        fixed = [name for name in internal if self._repartitions[name].partitions]
        if outside:
            width = self._common(outside)
        elif fixed:
            width = self._common(fixed)
        else:
            width = max(map(self.of, internal), default=0)
        for name in internal:
            if name in fixed and self.of(name) != width:
                raise _WrongWidth(
                    f"the repartition topic {name} has {self.of(name)} partitions, its partners have {width}"
                )
            self._decided[name] = width

    def _common(self, topics: list[str]) -> int:
        widths = {name: self.of(name) for name in topics}
        if len(set(widths.values())) > 1:
            told = ", ".join(f"{name} {width}" for name, width in widths.items())
            raise _WrongWidth(f"these topics have to have equal numbers of partitions: {told}")
        return next(iter(widths.values()))


def _stopped(code: StatusCode, detail: str) -> ConfiguredTopology:
    return ConfiguredTopology(Status(code, detail))


_SHOWN = 10


def _few(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
