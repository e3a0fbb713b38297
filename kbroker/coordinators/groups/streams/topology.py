"""The topology of a streams application as its members bring it: subtopologies with their topics.

A group keeps the first one it is given. Equal ones are equal whatever the order of their parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbroker.coordinators.groups.errors import StreamsInvalidTopology


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A repartition or changelog topic, which the broker makes."""

    name: str
    partitions: int = 0
    """0: to be decided."""
    replication_factor: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subtopology:
    subtopology_id: str
    source_topics: frozenset[str] = frozenset()
    repartition_source_topics: Mapping[str, InternalTopic] = field(default_factory=dict)
    repartition_sink_topics: frozenset[str] = frozenset()
    state_changelog_topics: Mapping[str, InternalTopic] = field(default_factory=dict)
    copartition_groups: frozenset[frozenset[str]] = frozenset()
    """Topics that have to be of one width."""

    @property
    def inputs(self) -> frozenset[str]:
        """What its tasks read."""
        return self.source_topics | self.repartition_source_topics.keys()

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)


@dataclass(frozen=True, slots=True)
class Topology:
    epoch: int
    subtopologies: Mapping[str, Subtopology]

    def inputs(self) -> frozenset[str]:
        return frozenset[str]().union(*(each.inputs for each in self.subtopologies.values()))

    def topics(self) -> frozenset[str]:
        """All that must exist."""
        changelogs = (each.state_changelog_topics.keys() for each in self.subtopologies.values())
        return self.inputs().union(*changelogs)


def copartition_group(
    sources: list[str],
    repartitions: list[str],
    source_indexes: Iterable[int],
    repartition_indexes: Iterable[int],
) -> frozenset[str]:
    """The topics that a request names by their places in its lists."""
    try:
        return frozenset(
            [
                *(sources[_place(index)] for index in source_indexes),
                *(repartitions[_place(index)] for index in repartition_indexes),
            ]
        )
    except IndexError:
        raise StreamsInvalidTopology("a copartition group names a topic that is not there") from None


def _place(index: int) -> int:
    if index < 0:
        raise IndexError
    return index


def by_id(subtopologies: Iterable[Subtopology]) -> dict[str, Subtopology]:
    found: dict[str, Subtopology] = {}
    for each in subtopologies:
        if each.subtopology_id in found:
            raise StreamsInvalidTopology(f"there are two subtopologies {each.subtopology_id}")
        found[each.subtopology_id] = each
    return found


# as the store keeps it


def to_state(topology: Topology) -> dict[str, Any]:
    return {
        "epoch": topology.epoch,
        "subtopologies": [
            {
                "id": each.subtopology_id,
                "sources": sorted(each.source_topics),
                "repartitions": [_topic_state(topic) for topic in each.repartition_source_topics.values()],
                "sinks": sorted(each.repartition_sink_topics),
                "changelogs": [_topic_state(topic) for topic in each.state_changelog_topics.values()],
                "copartition_groups": sorted(sorted(group) for group in each.copartition_groups),
            }
            for each in topology.subtopologies.values()
        ],
    }


def from_state(state: Mapping[str, Any]) -> Topology:
    return Topology(
        state["epoch"],
        {
            each["id"]: Subtopology(
                each["id"],
                frozenset(each["sources"]),
                {topic["name"]: InternalTopic(**topic) for topic in each["repartitions"]},
                frozenset(each["sinks"]),
                {topic["name"]: InternalTopic(**topic) for topic in each["changelogs"]},
                frozenset(frozenset(group) for group in each["copartition_groups"]),
            )
            for each in state["subtopologies"]
        },
    )


def _topic_state(topic: InternalTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "configs": dict(topic.configs),
    }
