"""Where share groups are in their partitions: seen, set and deleted by administrators (KIP-932).

Only a group without members can be altered. What is set replaces all that was known of the records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.coordinators.groups.errors import InvalidGroupId, NonEmptyGroup
from kbroker.coordinators.shares.state import UNDECIDED, ShareState
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending, Steps, mapped, run, wait
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.coordinators.shares.states import ShareStates
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Log
    from kbroker.topics.registry import Topic

Partition = tuple[bytes, int]
"""Topic id and partition."""


class SharePosition(NamedTuple):
    start_offset: int = UNDECIDED
    leader_epoch: int = 0
    lag: int = -1
    """Records that are not done with yet; -1: not known before the start offset is decided."""


def position(
    resources: Resources, states: ShareStates, group_id: str, topic: Topic, partition: int
) -> SharePosition | Pending[SharePosition]:
    """Of a topic and a group that the caller may describe."""
    state = states.get(ShareKey(group_id, topic.topic_id, partition))
    if state is None or state.start_offset == UNDECIDED:
        return SharePosition()
    log = resources.log_of(topic, partition)
    refreshed = log.refresh()
    if refreshed is None:
        return _position(state, log)
    return mapped(refreshed, lambda _: _position(state, log))


def _position(state: ShareState, log: Log) -> SharePosition:
    lag = log.high_watermark - state.start_offset - state.terminal_count
    return SharePosition(state.start_offset, log.leader_epoch, lag)


def alter(
    resources: Resources, group_id: str, offsets: Mapping[Partition, int], *, create: bool, now_ms: int
) -> Pending[None]:
    """Let the group go on at these offsets. `create`: make the group if there is none."""
    states = resources.share_states(group_id, AclOperation.READ)
    groups = resources.groups(group_id, AclOperation.READ)
    exists = _check(groups, group_id)
    # Below 0 there is nothing: it is decided anew.
    replaced = {
        ShareKey(group_id, *partition): ShareState(max(offset, UNDECIDED))
        for partition, offset in offsets.items()
    }

    def steps() -> Steps[None]:
        if create and not exists:
            created = groups.share_groups.create_empty(group_id, now_ms)
            if isinstance(created, Pending):
                yield from wait(created)
                _check(groups, group_id)  # somebody may have joined
        if replaced:
            yield from wait(states.replace(replaced))

    return run(steps())


def delete(resources: Resources, group_id: str, topic_ids: Collection[bytes]) -> Pending[Collection[bytes]]:
    """Forget where the group is in these topics. Returns those of which anything was known."""
    states = resources.share_states(group_id, AclOperation.DELETE)
    groups = resources.groups(group_id, AclOperation.DELETE)
    if not _check(groups, group_id):
        groups.share_groups.group(group_id)  # raises
    gone = [each for each in states.initialized(group_id) if each[0] in topic_ids]

    def steps() -> Steps[Collection[bytes]]:
        if gone:
            yield from wait(states.replace({ShareKey(group_id, *each): None for each in gone}))
        return {topic_id for topic_id, _ in gone}

    return run(steps())


def _check(groups: GroupCoordinator, group_id: str) -> bool:
    """Whether the group is there. Raises unless it may be altered."""
    if not group_id:
        raise InvalidGroupId("The group id is empty.")
    if group_id not in groups.groups:
        return False
    if not groups.share_groups.group(group_id).is_empty:
        raise NonEmptyGroup("The group is not empty.")
    return True
