"""The member that a StreamsGroupHeartbeat speaks of: whether it may, and what the request says of it."""

from __future__ import annotations

from kbroker.coordinators.groups.errors import InvalidRequest
from kbroker.coordinators.groups.member_epochs import check_member_epoch
from kbroker.coordinators.groups.modern_member import with_news
from kbroker.coordinators.groups.streams.configured_topology import ConfiguredTopology
from kbroker.coordinators.groups.streams.group import StreamsGroup
from kbroker.coordinators.groups.streams.member import StreamsMember
from kbroker.coordinators.groups.streams.requests import HeartbeatRequest
from kbroker.coordinators.groups.streams.tasks import Tasks


def find_or_make_member(group: StreamsGroup, request: HeartbeatRequest) -> StreamsMember:
    if request.member_epoch == 0 and request.member_id not in group.members:
        return StreamsMember(request.member_id)
    member = group.member(request.member_id)
    check_member_epoch(
        member,
        request.member_epoch,
        lambda: request.owned is not None and not request.owned - member.assigned,
    )
    return member


def brought_up_to_date(member: StreamsMember, request: HeartbeatRequest) -> StreamsMember:
    """The member with what the request says of it; the same object if that is nothing new."""
    return with_news(
        member,
        {
            "rack_id": request.rack_id,
            "rebalance_timeout_ms": (
                None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
            ),
            "topology_epoch": None if request.topology is None else request.topology.epoch,
            "process_id": request.process_id,
            "user_endpoint": request.user_endpoint,
            "client_tags": request.client_tags,
            "client_id": request.client_id,
            "client_host": request.client_host,
        },
    )


def check_topology(group: StreamsGroup, request: HeartbeatRequest) -> None:
    """A group keeps its first topology. Who brings an older one is told so, and may stay."""
    topology = request.topology
    if topology is not None and topology.epoch >= group.topology.epoch and topology != group.topology:
        raise InvalidRequest(
            "the group has another topology, which cannot be replaced while there is the group"
        )


def check_tasks(topology: ConfiguredTopology, owned: Tasks | None) -> None:
    if owned is None or not topology.is_ready:
        return
    for task in owned.all():
        if not 0 <= task.partition < topology.task_counts.get(task.subtopology_id, 0):
            raise InvalidRequest(f"there is no task {task.subtopology_id}_{task.partition}")
