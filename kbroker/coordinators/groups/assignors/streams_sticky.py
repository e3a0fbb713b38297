"""The assignor `sticky` of streams groups: an even share of active tasks for each member, and as few of them
moved as that allows.

A task stays with the member that had it, else it goes to one that keeps its state as a standby, else to the
member with the least to do. Standbys are for stateful tasks only; no process gets a task twice, so there may
be fewer than asked for. They go where the task was last active, or was a standby, within an even share of all
tasks, else to the process with the least to do.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kbroker.coordinators.groups.streams.tasks import NO_TASKS, TaskId, Tasks


@dataclass(slots=True, frozen=True)
class StreamsMemberSpec:
    process_id: str
    previous: Tasks = NO_TASKS


def assign_sticky(
    members: Mapping[str, StreamsMemberSpec],
    tasks: Collection[TaskId],
    stateful: Collection[str],
    standby_replicas: int,
) -> dict[str, Tasks]:
    """`stateful`: the ids of the subtopologies whose tasks have state."""
    if not members:
        return {}
    assignment = _Assignment(members)
    _assign_active(assignment, tasks)
    if standby_replicas and len(assignment.processes) > 1:
        with_state = [task for task in tasks if task.subtopology_id in stateful]
        _assign_standbys(assignment, with_state, standby_replicas)
    return assignment.result()


class _Process:
    __slots__ = ("load", "members", "tasks")

    def __init__(self) -> None:
        self.members: list[str] = []
        self.tasks: set[TaskId] = set()
        self.load = 0.0
        """Tasks per member."""


class _Assignment:
    def __init__(self, members: Mapping[str, StreamsMemberSpec]) -> None:
        self.members = members
        self.processes: dict[str, _Process] = {}
        self.counts: dict[str, int] = dict.fromkeys(members, 0)
        self.active: dict[str, set[TaskId]] = {member_id: set() for member_id in members}
        self.standby: dict[str, set[TaskId]] = {member_id: set() for member_id in members}
        self.was_active: dict[TaskId, str] = {}
        self.were_standby: dict[TaskId, list[str]] = {}
        for member_id, spec in members.items():
            self.processes.setdefault(spec.process_id, _Process()).members.append(member_id)
            for task in spec.previous.active:
                self.was_active[task] = member_id
            for task in spec.previous.standby:
                self.were_standby.setdefault(task, []).append(member_id)

    def process_of(self, member_id: str) -> _Process:
        return self.processes[self.members[member_id].process_id]

    def give(self, roles: dict[str, set[TaskId]], member_id: str, task: TaskId) -> int:
        """How many tasks the member has then."""
        roles[member_id].add(task)
        process = self.process_of(member_id)
        process.tasks.add(task)
        process.load += 1 / len(process.members)
        self.counts[member_id] += 1
        return self.counts[member_id]

    def least_loaded(self, member_ids: Iterable[str]) -> str | None:
        return min(
            member_ids,
            key=lambda member_id: (self.process_of(member_id).load, self.counts[member_id]),
            default=None,
        )

    def result(self) -> dict[str, Tasks]:
        return {
            member_id: Tasks(frozenset(self.active[member_id]), frozenset(self.standby[member_id]))
            for member_id in self.members
        }


class _Quota:
    """An even share: what is left, over the members that have not had theirs."""

    __slots__ = ("_members", "_tasks", "share")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.share = -(-tasks // members)

    def note(self, count: int) -> None:
        """A member has so many tasks now."""
        if count == self.share:
            self._tasks -= count
            self._members -= 1
            self.share = -(-self._tasks // self._members) if self._members else 0


def _assign_active(assignment: _Assignment, tasks: Collection[TaskId]) -> None:
    quota = _Quota(len(tasks), len(assignment.members))

    def kept_by(member_id: str | None, task: TaskId) -> bool:
        if member_id is None or assignment.counts[member_id] >= quota.share:
            return False
        quota.note(assignment.give(assignment.active, member_id, task))
        return True

    # By partition first: tasks of one partition tend to be together already.
    left = sorted(tasks, key=lambda task: (task.partition, task.subtopology_id))
    left = [task for task in left if not kept_by(assignment.was_active.get(task), task)]
    left = [
        task
        for task in left
        if not kept_by(assignment.least_loaded(assignment.were_standby.get(task, ())), task)
    ]
    order = {member_id: index for index, member_id in enumerate(assignment.members)}

    def rank(member_id: str) -> tuple[int, float, int, str]:
        load = assignment.process_of(member_id).load
        return assignment.counts[member_id], load, order[member_id], member_id

    heap = [rank(member_id) for member_id in assignment.members]
    heapq.heapify(heap)
    for task in sorted(left):
        while heap[0] != (now := rank(heap[0][-1])):  # its process has been given something meanwhile
            heapq.heapreplace(heap, now)
        member_id = heap[0][-1]
        assignment.give(assignment.active, member_id, task)
        heapq.heapreplace(heap, rank(member_id))


def _assign_standbys(assignment: _Assignment, tasks: Collection[TaskId], replicas: int) -> None:
    replicas = min(replicas, len(assignment.processes) - 1)
    active = sum(assignment.counts.values())
    share = -(-(active + len(tasks) * replicas) // len(assignment.members))
    left: list[tuple[TaskId, int]] = []
    for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology_id), reverse=True):
        given = 0
        was_active = assignment.was_active.get(task)
        earlier = [] if was_active is None else [was_active]
        standbys = assignment.were_standby.get(task, ())
        earlier += sorted(
            standbys, key=lambda each: (assignment.process_of(each).load, assignment.counts[each])
        )
        for member_id in earlier:
            if given == replicas:
                break
            if task not in assignment.process_of(member_id).tasks and assignment.counts[member_id] < share:
                assignment.give(assignment.standby, member_id, task)
                given += 1
        if given < replicas:
            left.append((task, replicas - given))
    _give_to_least_loaded(assignment, sorted(left, reverse=True))


def _give_to_least_loaded(assignment: _Assignment, standbys: Iterable[tuple[TaskId, int]]) -> None:
    heap = [(process.load, index, process) for index, process in enumerate(assignment.processes.values())]
    heapq.heapify(heap)
    for task, replicas in standbys:
        taken = []
        while heap and replicas:
            _, index, process = heapq.heappop(heap)
            if task not in process.tasks:
                member_id = min(process.members, key=assignment.counts.__getitem__)
                assignment.give(assignment.standby, member_id, task)
                replicas -= 1
            taken.append((process.load, index, process))
        for entry in taken:
            heapq.heappush(heap, entry)
