"""Tasks of a streams application: a subtopology and a partition of its sources.

A member runs a task as active (it processes), as standby (it keeps a copy of the state) or as warm-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class TaskId(NamedTuple):
    subtopology_id: str
    partition: int


TaskIds = frozenset[TaskId]
_NONE: TaskIds = frozenset()


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a member, by role."""

    active: TaskIds = _NONE
    standby: TaskIds = _NONE
    warmup: TaskIds = _NONE

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def __or__(self, other: Tasks) -> Tasks:
        return Tasks(self.active | other.active, self.standby | other.standby, self.warmup | other.warmup)

    def __and__(self, other: Tasks) -> Tasks:
        return Tasks(self.active & other.active, self.standby & other.standby, self.warmup & other.warmup)

    def __sub__(self, other: Tasks) -> Tasks:
        return Tasks(self.active - other.active, self.standby - other.standby, self.warmup - other.warmup)

    def all(self) -> Iterable[TaskId]:
        yield from self.active
        yield from self.standby
        yield from self.warmup


NO_TASKS = Tasks()


def task_ids(partitions: Iterable[tuple[str, Iterable[int]]]) -> TaskIds:
    """Of subtopologies and their partitions."""
    return frozenset(TaskId(subtopology, partition) for subtopology, held in partitions for partition in held)


def by_subtopology(tasks: Iterable[TaskId]) -> Mapping[str, list[int]]:
    """The partitions of each subtopology, both in order."""
    held: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        held.setdefault(subtopology, []).append(partition)
    return held
