"""How a member moves from the tasks that it holds to its target, one safe step per heartbeat.

A step gives up before it takes: while anything is pending revocation the member stays in its epoch; then it
goes to the target's epoch and takes whatever of the target is free. An active task is free when no member
holds it and none of the process keeps its state; a standby or warm-up task when no member of the process has
the task in any role: two threads of one process cannot open one state directory. What the member has given up
with this step is free with the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kbroker.coordinators.groups.streams.member import MemberState, StreamsMember
from kbroker.coordinators.groups.streams.tasks import TaskId, TaskIds, Tasks


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What a step depends on, besides the member."""

    assignment_epoch: int
    target: Tasks
    is_active: Callable[[TaskId], bool]
    """Whether a member holds the task as active."""
    is_in_process: Callable[[TaskId], bool]
    """Whether a member of the same process holds the task in any role."""
    owned: Tasks | None = None
    """What the member reports; None when the request leaves it out."""


def reconcile(member: StreamsMember, context: Reconciliation) -> StreamsMember:
    """The member after the next step, or the same object where there is none."""
    if member.state is MemberState.STABLE and member.member_epoch == context.assignment_epoch:
        return member
    epoch = member.member_epoch
    if member.state is MemberState.UNREVOKED_TASKS:
        if _still_owns(member.pending_revocation, context.owned):
            return member
        epoch = min(epoch + 1, context.assignment_epoch)  # it has done what its epoch asked for
    kept = member.assigned & context.target
    revoked = member.assigned - kept
    if revoked and _still_owns(revoked, context.owned):
        return member.with_tasks(MemberState.UNREVOKED_TASKS, epoch, kept, revoked)
    wanted = context.target - kept
    free = Tasks(
        _free(wanted.active, lambda task: context.is_active(task) or context.is_in_process(task)),
        _free(wanted.standby, context.is_in_process),
        _free(wanted.warmup, context.is_in_process),
    )
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED_TASKS
    after = member.with_tasks(state, context.assignment_epoch, kept | free, Tasks())
    same_place = (after.member_epoch, after.state) == (member.member_epoch, member.state)
    return member if same_place and after.assigned == member.assigned else after


def _free(tasks: TaskIds, is_taken: Callable[[TaskId], bool]) -> TaskIds:
    return frozenset(task for task in tasks if not is_taken(task))


def _still_owns(tasks: Tasks, owned: Tasks | None) -> bool:
    """Whether the member may still run one of them: a member that does not say so may."""
    return owned is None or bool(tasks & owned)
