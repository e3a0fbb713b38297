"""The epoch of a member: a heartbeat names it, and is refused if it is another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kbroker.coordinators.groups.errors import FencedMemberEpoch


class EpochMember(Protocol):
    @property
    def member_id(self) -> str: ...

    @property
    def member_epoch(self) -> int: ...

    @property
    def previous_member_epoch(self) -> int: ...


def check_member_epoch(
    member: EpochMember, member_epoch: int, may_have_missed: Callable[[], bool] = lambda: True
) -> None:
    """A member may be one epoch behind if it may have missed the answer that raised it.

    Epoch 0 is a new start.
    """
    if member_epoch in (0, member.member_epoch):
        return
    one_behind = member_epoch == member.previous_member_epoch and member_epoch < member.member_epoch
    if not one_behind or not may_have_missed():
        raise FencedMemberEpoch(
            f"the member's epoch is {member.member_epoch}, not {member_epoch}: drop all and join again"
        )
