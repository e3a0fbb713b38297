"""Which share partitions members of share groups may not acquire records of: those taken from them.

Whoever is in no group, or was never told anything else, may acquire of all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.coordinators.shares.store import ShareKey
    from kbroker.requests.share_sessions import Partition
    from kbroker.shares.live import LiveShare


class MemberRights:
    def __init__(self, live: Callable[[ShareKey], LiveShare | None]) -> None:
        self._live = live
        self._withdrawn: dict[tuple[str, str], set[Partition]] = {}  # by group and member

    def may_acquire(self, group_id: str, member_id: str, partition: Partition) -> bool:
        withdrawn = self._withdrawn.get((group_id, member_id))
        return withdrawn is None or partition not in withdrawn

    def withdraw(self, key: ShareKey, member_id: str) -> bool:
        """The member acquires no more of this share partition; False: it does, since it holds some."""
        live = self._live(key)
        if live is not None and live.partition.leases_of(member_id):
            return False
        self._withdrawn.setdefault((key.group_id, member_id), set()).add(key[1:])
        return True

    def grant(self, key: ShareKey, member_id: str) -> None:
        withdrawn = self._withdrawn.get((key.group_id, member_id))
        if withdrawn is not None:
            withdrawn.discard(key[1:])
            if not withdrawn:
                del self._withdrawn[key.group_id, member_id]

    def forget(self, group_id: str, member_id: str) -> None:
        self._withdrawn.pop((group_id, member_id), None)
