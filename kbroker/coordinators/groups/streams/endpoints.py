"""Where the members of a streams group answer interactive queries, and which partitions each has there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kbroker.coordinators.groups.environment import TopicView
from kbroker.coordinators.groups.streams.configured_topology import ConfiguredTopology
from kbroker.coordinators.groups.streams.member import Endpoint, StreamsMember
from kbroker.coordinators.groups.streams.tasks import TaskId, by_subtopology

TopicPartitions = list[tuple[str, list[int]]]


class EndpointPartitions(NamedTuple):
    endpoint: Endpoint
    active: TopicPartitions
    standby: TopicPartitions


def partitions_by_endpoint(
    members: Iterable[StreamsMember], topology: ConfiguredTopology, topics: TopicView
) -> list[EndpointPartitions]:
    return [
        EndpointPartitions(
            member.user_endpoint,
            _partitions(member.assigned.active, topology, topics),
            _partitions(member.assigned.standby, topology, topics),
        )
        for member in members
        if member.user_endpoint is not None
    ]


def _partitions(tasks: Iterable[TaskId], topology: ConfiguredTopology, topics: TopicView) -> TopicPartitions:
    """A task reads the partition of its number in each topic of its subtopology that has one."""
    found = []
    for subtopology_id, held in by_subtopology(tasks).items():
        subtopology = topology.subtopologies.get(subtopology_id)
        for topic in sorted(subtopology.inputs) if subtopology is not None else ():
            count = topics.partition_count(topic) or 0
            partitions = [partition for partition in held if partition < count]
            if partitions:
                found.append((topic, partitions))
    return found
