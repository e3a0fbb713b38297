"""What the coordinator and the offset manager expect of a group of any type."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Protocol

from kbroker.coordinators.groups.errors import GroupError
from kbroker.coordinators.groups.store import CommittedOffset

CheckPartition = Callable[[bytes | None, int], None]
"""Raises a GroupError if an offset of this topic id and partition may not be committed."""


class Group(Protocol):
    @property
    def group_id(self) -> str: ...

    @property
    def type(self) -> str:
        """ "classic", "consumer", "share" or "streams"."""
        ...

    @property
    def state(self) -> str:
        """By Kafka's name, as ListGroups shows it."""
        ...

    @property
    def protocol_type(self) -> str | None:
        """None for a group that nobody ever joined."""
        ...

    @property
    def members(self) -> Sized: ...

    @property
    def is_empty(self) -> bool: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        /,
        *,
        api_version: int,
        transactional: bool,
    ) -> CheckPartition | None:
        """Raise unless these offsets may be committed; if it depends on the partition, the result decides."""
        ...

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def validate_offset_delete(self) -> None: ...

    def validate_delete(self) -> None: ...

    def offset_retention_start_ms(self, committed: CommittedOffset) -> int | None:
        """When the retention period of this offset began; None while it cannot expire."""
        ...

    def offsets_committed(self, member_id: str, now_ms: int) -> None:
        """A member has committed offsets."""
        ...

    def close(self, reason: GroupError) -> None:
        """The group is deleted or replaced: tell whoever waits for an answer, cancel its timers."""
        ...


class GroupRegistry(Protocol):
    """Where the groups of all types are, by id."""

    @property
    def groups(self) -> dict[str, Group]: ...

    def replace(self, group: Group) -> None:
        """From now on this is the group of its id."""
        ...
