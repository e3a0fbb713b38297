"""Answers that wait until the group they speak of is stored.

What could not be stored is stored with the group's next change or heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

from kbroker.coordinators.groups.epoch_group import EpochGroup
from kbroker.coordinators.groups.errors import CoordinatorNotAvailable
from kbroker.coordinators.groups.store import GroupStore, State
from kbroker.pending import Pending

T = TypeVar("T")
G = TypeVar("G", bound=EpochGroup[Any, Any])


def when_group_saved(
    store: GroupStore,
    group: G,
    group_state: Callable[[G], State],
    member_state: Callable[[G, str], State | None],
    result: T,
) -> T | Pending[T]:
    """Store what has changed of the group. The result, when that is done; at once if nothing has."""
    unsaved = group.take_unsaved()
    if unsaved is None:
        return result
    members = {member_id: member_state(group, member_id) for member_id in unsaved}
    saved = store.save_group(group.group_id, group.type, group_state(group), members)
    saved.then(partial(_mark_unsaved_if_failed, group, unsaved))
    return when_stored(group.group_id, saved, result)


def when_stored(group_id: str, saved: Pending[None], result: T) -> T | Pending[T]:
    answer: Pending[T] = Pending()

    def settle(saved: Pending[None]) -> None:
        try:
            saved.result()
        except Exception as error:
            refusal = CoordinatorNotAvailable(f"the group {group_id} could not be stored")
            refusal.__cause__ = error
            answer.fail(refusal)
        else:
            answer.resolve(result)

    saved.then(settle)
    return answer.result() if answer.done else answer


def _mark_unsaved_if_failed(
    group: EpochGroup[Any, Any], unsaved: Collection[str], saved: Pending[None]
) -> None:
    try:
        saved.result()
    except Exception:
        group.mark_unsaved(unsaved)
