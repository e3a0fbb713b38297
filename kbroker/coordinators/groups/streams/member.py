"""One member of a streams group: an immutable value, replaced as a whole when anything about it changes.

`assigned` are the tasks that the member runs or has been told to run; `pending_revocation` those it has been
told to give up and has not yet. `active_epochs` names for each active task among both the member epoch at
which the member got it.

STABLE            the member has reached the epoch it is in
UNREVOKED_TASKS   it keeps its epoch until it has given up what is pending revocation
UNRELEASED_TASKS  it is in the target's epoch and waits for tasks that others still hold
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from kbroker.coordinators.groups.streams.tasks import NO_TASKS, TaskId, Tasks

LEAVE_GROUP_MEMBER_EPOCH = -1
LEAVE_GROUP_STATIC_MEMBER_EPOCH = -2


class MemberState(Enum):
    STABLE = "STABLE"
    UNREVOKED_TASKS = "UNREVOKED_TASKS"
    UNRELEASED_TASKS = "UNRELEASED_TASKS"


class Endpoint(NamedTuple):
    """Where the application answers interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """Members of one process share its local state."""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: Tasks = NO_TASKS
    pending_revocation: Tasks = NO_TASKS
    active_epochs: Mapping[TaskId, int] = field(default_factory=dict)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def with_tasks(
        self, state: MemberState, member_epoch: int, assigned: Tasks, revoked: Tasks
    ) -> StreamsMember:
        """The member with other tasks, in another state; new ones it gets at this epoch."""
        return replace(
            self,
            state=state,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            assigned=assigned,
            pending_revocation=revoked,
            active_epochs={
                task: self.active_epochs.get(task, member_epoch) for task in assigned.active | revoked.active
            },
        )
