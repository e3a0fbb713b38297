"""A streams group as the store keeps it: one state for the group, one for each member, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.store import State, StoredGroup
from kbroker.coordinators.groups.streams import topology as topologies
from kbroker.coordinators.groups.streams.group import StreamsGroup
from kbroker.coordinators.groups.streams.member import Endpoint, MemberState, StreamsMember
from kbroker.coordinators.groups.streams.tasks import NO_TASKS, TaskId, Tasks, by_subtopology, task_ids

_GROUP_FIELDS = (
    "group_epoch",
    "assignment_timestamp_ms",
    "metadata_hash",
    "validated_epoch",
    "standby_replicas",
)
_MEMBER_FIELDS = (
    "member_epoch",
    "previous_member_epoch",
    "rack_id",
    "client_id",
    "client_host",
    "rebalance_timeout_ms",
    "topology_epoch",
    "process_id",
)


def group_state(group: StreamsGroup) -> dict[str, Any]:
    return {
        **{name: getattr(group, name) for name in _GROUP_FIELDS},
        "assignment_epoch": group.assignment_epoch,
        "topology": topologies.to_state(group.topology),
    }


def member_state(group: StreamsGroup, member_id: str) -> dict[str, Any] | None:
    """None if the member is gone."""
    member = group.members.get(member_id)
    if member is None:
        return None
    epochs: dict[str, list[Any]] = {}
    for task, epoch in member.active_epochs.items():
        epochs.setdefault(task.subtopology_id, []).append([task.partition, epoch])
    return {
        **{name: getattr(member, name) for name in _MEMBER_FIELDS},
        "state": member.state.value,
        "user_endpoint": None if member.user_endpoint is None else list(member.user_endpoint),
        "client_tags": dict(member.client_tags),
        "assigned": _from_tasks(member.assigned),
        "pending_revocation": _from_tasks(member.pending_revocation),
        "active_epochs": epochs,
        "target": _from_tasks(group.target.get(member_id, NO_TASKS)),
    }


def restore(stored: StoredGroup, env: GroupEnvironment) -> StreamsGroup:
    group = StreamsGroup(stored.group_id, env, topologies.from_state(stored.state["topology"]))
    for name in _GROUP_FIELDS:
        setattr(group, name, stored.state[name])
    for member_id, state in stored.members.items():
        group.put(_member(member_id, state))
        group.target[member_id] = _to_tasks(state["target"])
    group.set_assignment_epoch(stored.state["assignment_epoch"])
    group.take_unsaved()
    return group


def _member(member_id: str, state: State) -> StreamsMember:
    endpoint = state["user_endpoint"]
    return StreamsMember(
        member_id,
        **{name: state[name] for name in _MEMBER_FIELDS},
        state=MemberState(state["state"]),
        user_endpoint=None if endpoint is None else Endpoint(*endpoint),
        client_tags=state["client_tags"],
        assigned=_to_tasks(state["assigned"]),
        pending_revocation=_to_tasks(state["pending_revocation"]),
        active_epochs={
            TaskId(subtopology, partition): epoch
            for subtopology, epochs in state["active_epochs"].items()
            for partition, epoch in epochs
        },
    )


def _from_tasks(tasks: Tasks) -> list[Mapping[str, list[int]]]:
    return [by_subtopology(each) for each in (tasks.active, tasks.standby, tasks.warmup)]


def _to_tasks(state: list[Mapping[str, list[int]]]) -> Tasks:
    active, standby, warmup = (task_ids(each.items()) for each in state)
    return Tasks(active, standby, warmup)
