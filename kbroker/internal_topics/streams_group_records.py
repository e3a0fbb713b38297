"""The records of a streams group (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kbroker.protocol.coordinator_records import encode_key, encode_value
from kbroker.protocol.coordinator_records.streams_groups import (
    AssignmentConfig,
    CopartitionGroup,
    Endpoint,
    HeldTasks,
    KeyValue,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    Subtopology,
    TargetTasks,
    TopicConfig,
    TopicInfo,
)

if TYPE_CHECKING:
    from kbroker.coordinators.groups.store import State
    from kbroker.internal_topics.topic import KeyedRecord

_STATES = {"STABLE": 1, "UNREVOKED_TASKS": 2, "UNRELEASED_TASKS": 3}


def records_of_group(group_id: str, state: State) -> list[KeyedRecord]:
    metadata = StreamsGroupMetadataValue(
        epoch=state["group_epoch"],
        metadata_hash=state["metadata_hash"],
        validated_topology_epoch=state["validated_epoch"],
        last_assignment_configs=[AssignmentConfig("num.standby.replicas", str(state["standby_replicas"]))],
    )
    target = StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=state["assignment_epoch"], assignment_timestamp=state["assignment_timestamp_ms"]
    )
    topology = StreamsGroupTopologyValue(
        epoch=state["topology"]["epoch"],
        subtopologies=[_subtopology(each) for each in state["topology"]["subtopologies"]],
    )
    return [
        (encode_key(StreamsGroupTopologyKey(group_id)), encode_value(topology)),
        (encode_key(StreamsGroupMetadataKey(group_id)), encode_value(metadata)),
        (encode_key(StreamsGroupTargetAssignmentMetadataKey(group_id)), encode_value(target)),
    ]


def records_of_member(group_id: str, member_id: str, state: State | None) -> list[KeyedRecord]:
    metadata_key = encode_key(StreamsGroupMemberMetadataKey(group_id, member_id))
    target_key = encode_key(StreamsGroupTargetAssignmentMemberKey(group_id, member_id))
    current_key = encode_key(StreamsGroupCurrentMemberAssignmentKey(group_id, member_id))
    if state is None:
        return [(current_key, None), (target_key, None), (metadata_key, None)]
    endpoint = state["user_endpoint"]
    metadata = StreamsGroupMemberMetadataValue(
        instance_id=None,
        rack_id=state["rack_id"],
        client_id=state["client_id"],
        client_host=state["client_host"],
        rebalance_timeout_ms=state["rebalance_timeout_ms"],
        topology_epoch=state["topology_epoch"],
        process_id=state["process_id"],
        user_endpoint=None if endpoint is None else Endpoint(*endpoint),
        client_tags=[KeyValue(*tag) for tag in state["client_tags"].items()],
    )
    target = StreamsGroupTargetAssignmentMemberValue(*map(_target, state["target"]))
    epochs = {
        (subtopology, partition): epoch
        for subtopology, held in state["active_epochs"].items()
        for partition, epoch in held
    }
    active, standby, warmup = state["assigned"]
    active_leaving, standby_leaving, warmup_leaving = state["pending_revocation"]
    current = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=state["member_epoch"],
        previous_member_epoch=state["previous_member_epoch"],
        state=_STATES[state["state"]],
        active_tasks=_held(active, epochs),
        standby_tasks=_held(standby),
        warmup_tasks=_held(warmup),
        active_tasks_pending_revocation=_held(active_leaving, epochs),
        standby_tasks_pending_revocation=_held(standby_leaving),
        warmup_tasks_pending_revocation=_held(warmup_leaving),
    )
    return [
        (metadata_key, encode_value(metadata)),
        (target_key, encode_value(target)),
        (current_key, encode_value(current)),
    ]


def _target(tasks: Mapping[str, list[int]]) -> list[TargetTasks]:
    return [TargetTasks(*each) for each in tasks.items()]


def _held(
    tasks: Mapping[str, list[int]], epochs: Mapping[tuple[str, int], int] | None = None
) -> list[HeldTasks]:
    return [
        HeldTasks(
            subtopology,
            partitions,
            [] if epochs is None else [epochs.get((subtopology, partition), 0) for partition in partitions],
        )
        for subtopology, partitions in tasks.items()
    ]


def _subtopology(state: Mapping[str, Any]) -> Subtopology:
    sources, repartitions = state["sources"], [topic["name"] for topic in state["repartitions"]]
    return Subtopology(
        subtopology_id=state["id"],
        source_topics=sources,
        state_changelog_topics=_topics(state["changelogs"]),
        repartition_sink_topics=state["sinks"],
        repartition_source_topics=_topics(state["repartitions"]),
        copartition_groups=[
            CopartitionGroup(
                source_topics=_places(sources, group), repartition_source_topics=_places(repartitions, group)
            )
            for group in state["copartition_groups"]
        ],
    )


def _topics(states: Iterable[Mapping[str, Any]]) -> list[TopicInfo]:
    return [
        TopicInfo(
            topic["name"],
            topic["partitions"],
            topic["replication_factor"],
            [TopicConfig(*config) for config in sorted(topic["configs"].items())],
        )
        for topic in states
    ]


def _places(names: list[str], wanted: Iterable[str]) -> list[int]:
    wanted = set(wanted)
    return [place for place, name in enumerate(names) if name in wanted]
