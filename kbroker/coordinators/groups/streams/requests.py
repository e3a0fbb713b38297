"""What goes into a streams group with a heartbeat and what comes out: plain values, whatever the version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kbroker.coordinators.groups.errors import InvalidRequest, StreamsInvalidTopology
from kbroker.coordinators.groups.streams.configured_topology import Status
from kbroker.coordinators.groups.streams.endpoints import EndpointPartitions
from kbroker.coordinators.groups.streams.member import LEAVE_GROUP_STATIC_MEMBER_EPOCH, Endpoint
from kbroker.coordinators.groups.streams.tasks import TaskIds, Tasks
from kbroker.coordinators.groups.streams.topology import InternalTopic, Topology


@dataclass(slots=True)
class HeartbeatRequest:
    """None, or -1 for the timeout: as in the last request that said it."""

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active: TaskIds | None = None
    standby: TaskIds | None = None
    warmup: TaskIds | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] | None = None
    has_task_offsets: bool = False
    shutdown_application: bool = False
    client_id: str = ""
    client_host: str = ""

    @property
    def owned(self) -> Tasks | None:
        if self.active is None or self.standby is None or self.warmup is None:
            return None
        return Tasks(self.active, self.standby, self.warmup)

    @property
    def is_full(self) -> bool:
        """Whether it says everything, as a client does that does not know what the coordinator has heard."""
        return self.rebalance_timeout_ms != -1 and self.owned is not None


@dataclass(slots=True)
class HeartbeatResult:
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    tasks: Tasks | None = None
    """None: as in the last answer."""
    statuses: list[Status] = field(default_factory=list)
    endpoint_information_epoch: int = 0
    partitions_by_endpoint: list[EndpointPartitions] | None = None
    to_create: tuple[InternalTopic, ...] = ()
    """Internal topics that are missing."""


def validate_heartbeat(request: HeartbeatRequest) -> None:
    if not request.member_id.strip():
        raise InvalidRequest("a MemberId is needed")
    if not request.group_id.strip():
        raise InvalidRequest("a GroupId is needed")
    if request.instance_id is not None:
        raise InvalidRequest("streams groups have no static members: leave out the InstanceId")
    if request.rack_id is not None and not request.rack_id.strip():
        raise InvalidRequest("a RackId needs characters")
    if request.has_task_offsets or request.warmup:
        raise InvalidRequest("there are no warm-up tasks, and nobody asks for TaskOffsets or TaskEndOffsets")
    if request.member_epoch <= LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise InvalidRequest("there is no such MemberEpoch")
    lists = (request.active, request.standby, request.warmup)
    if request.member_epoch == 0:
        _validate_join(request)
    elif any(each is None for each in lists) and any(each is not None for each in lists):
        raise InvalidRequest("ActiveTasks, StandbyTasks and WarmupTasks come together")
    if request.member_epoch != 0 and request.topology is not None:
        raise InvalidRequest("only who joins brings a Topology")


def _validate_join(request: HeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("who joins names its RebalanceTimeoutMs")
    owned = request.owned
    if owned is None or owned:
        raise InvalidRequest("who joins has no tasks: send three lists of none")
    if request.topology is None:
        raise InvalidRequest("who joins brings its Topology")
    for subtopology in request.topology.subtopologies.values():
        for topic in subtopology.state_changelog_topics.values():
            if topic.partitions:
                raise StreamsInvalidTopology(
                    f"the changelog topic {topic.name} gets its number of partitions from its tasks"
                )
