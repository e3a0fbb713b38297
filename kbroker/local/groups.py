"""Groups of every kind, from code in the process: described, their offsets and lag, reset and deleted.

Members of groups are subscriptions (reading.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from kbroker.local.calls import Access
from kbroker.local.records import milliseconds
from kbroker.local.starts import Start, check_start
from kbroker.pending import Pending, mapped

if TYPE_CHECKING:
    from kbroker.coordinators.groups.coordinator import ListedGroup
    from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
    from kbroker.operations.group_lag import GroupLag
    from kbroker.operations.group_offsets import Fetched, Refusals
    from kbroker.operations.group_reset import ResetOffset, ResetTo
    from kbroker.operations.groups import DescribedGroup
    from kbroker.requests.resources import Resources

_ALL = 1 << 31


class Groups(Access):
    async def groups(
        self, prefix: str = "", *, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[ListedGroup]:
        """All whose ids begin with the prefix, by id; of these states and types, if any are named."""
        from kbroker.operations.groups import list_groups

        def find(resources: Resources) -> list[ListedGroup]:
            return list_groups(resources, limit=_ALL, states=states, types=types, prefix=prefix).groups

        return await self._ask(find)

    async def describe_group(self, group: str) -> DescribedGroup:
        """With its members and what they read."""
        from kbroker.operations.groups import describe_group

        return await self._ask(describe_group, group)

    async def delete_group(self, group: str) -> None:
        """With its offsets. Only a group without members."""
        from kbroker.operations.groups import delete_group

        await self._ask(delete_group, group, now_ms=self._now_ms())

    async def lag(self, group: str) -> GroupLag:
        """How far the group is behind, in all (`total`) and partition by partition."""
        from kbroker.operations.group_lag import group_lag

        return await self._ask(group_lag, group)

    async def committed(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        """All that the group has committed."""
        from kbroker.coordinators.groups.store import CommittedOffset
        from kbroker.operations.group_offsets import committed_offsets

        def find(resources: Resources) -> Fetched | Pending[Fetched]:
            return committed_offsets(resources, group)

        found = await self._ask(find)
        return {at: offset for at, offset in sorted(found.items()) if isinstance(offset, CommittedOffset)}

    async def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Where a group without members goes on: all of them, or it raises. Members commit for themselves."""
        from kbroker.operations.auditing import audited
        from kbroker.operations.group_offsets import NewOffset, commit_offsets

        new = [NewOffset(*at, offset) for at, offset in offsets.items()]
        now_ms = self._now_ms()

        def commit(resources: Resources) -> Pending[None] | None:
            return _none_refused(
                audited(
                    resources,
                    "GROUP",
                    group,
                    lambda: commit_offsets(resources, group, new, now_ms=now_ms),
                )
            )

        await self._ask(commit)

    async def delete_offsets(self, group: str, partitions: Collection[TopicPartition]) -> None:
        """Forget what is committed there, of topics that no member reads."""
        from kbroker.operations.auditing import audited
        from kbroker.operations.group_offsets import delete_offsets

        def delete(resources: Resources) -> Pending[None] | None:
            return _none_refused(
                audited(resources, "GROUP", group, lambda: delete_offsets(resources, group, list(partitions)))
            )

        await self._ask(delete)

    async def reset_offsets(
        self,
        group: str,
        to: Start | ResetTo,
        *,
        topics: Collection[str] | None = None,
        partitions: Collection[TopicPartition] | None = None,
        dry_run: bool = False,
    ) -> list[ResetOffset]:
        """Where a group without members goes on, within the log; of all that it has read, unless it is said.

        ``to``: an end of the log, an offset, a time, or `ResetTo("shift", -10)`: so many records back.
        """
        from kbroker.operations.group_reset import ResetTo, reset_offsets

        if not isinstance(to, ResetTo):
            check_start(to)
            if isinstance(to, datetime):
                to = ResetTo("time", milliseconds(to))
            elif isinstance(to, int):
                to = ResetTo("offset", to)
            else:
                to = ResetTo(to)
        return await self._ask(
            reset_offsets, group, to, topics, partitions, dry_run=dry_run, now_ms=self._now_ms()
        )


def _none_refused(result: Refusals | Pending[Refusals]) -> Pending[None] | None:
    """What is refused, be it a single partition, is raised."""

    def check(refusals: Refusals) -> None:
        for error in refusals.values():
            raise error

    return mapped(result, check)
