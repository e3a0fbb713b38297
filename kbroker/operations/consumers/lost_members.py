"""Consumers inside the broker that died with its process: members of their groups still, for whom others
would wait until their sessions end. None outlives the process, so they leave when it starts again.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.broker import Broker


def own_member_ids(broker: Broker) -> str:
    """What the member ids of consumers in this broker begin with."""
    return f"kbroker-{broker.cluster.node_id}-"


def drop_lost_members(broker: Broker) -> None:
    """To be called when the broker starts, before there are new ones."""
    from kbroker.coordinators.groups.consumer.group import ConsumerGroup

    prefix = own_member_ids(broker)
    lost = [
        (group.group_id, member_id)
        for group in broker.groups.groups.values()
        if isinstance(group, ConsumerGroup)
        for member_id in group.members
        if member_id.startswith(prefix)
    ]
    if lost:
        broker.scheduler.soon(lambda: _drop(broker, lost))


def _drop(broker: Broker, lost: list[tuple[str, str]]) -> None:
    from kbroker.coordinators.groups.consumer.member import LEAVE_GROUP_MEMBER_EPOCH
    from kbroker.coordinators.groups.consumer.requests import HeartbeatRequest
    from kbroker.coordinators.groups.errors import GroupError

    for group_id, member_id in lost:
        leave = HeartbeatRequest(group_id, member_id, LEAVE_GROUP_MEMBER_EPOCH)
        with contextlib.suppress(GroupError):  # somebody else was faster
            broker.groups.consumer_groups.heartbeat(leave, broker.clock())
