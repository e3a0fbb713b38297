"""What is in `__consumer_offsets`: every group with its members, and the offsets that it committed.

Offsets of an open transaction come when it commits, as others do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kbroker.coordinators.groups.store import GroupStore, Offsets, State, StoredGroups, TopicPartition
from kbroker.internal_topics.group_records import (
    member_state_of,
    members_of,
    offset_key,
    offset_record,
    records_of_group,
    records_of_member,
    state_of,
)
from kbroker.pending import Pending, wait
from kbroker.requests.long_requests import Steps

if TYPE_CHECKING:
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.coordinators.groups.group import Group
    from kbroker.internal_topics.topic import KeyedRecord, Write

T = TypeVar("T")

_AT_ONCE = 50


class GroupSource:
    def __init__(self, coordinator: Callable[[], GroupCoordinator]) -> None:
        self._coordinator = coordinator
        self._followed: FollowedStore | None = None
        self._write: Write | None = None
        self._types: dict[str, str] = {}
        self._written: dict[str, dict[bytes, int]] = {}
        """By group: the keys of what stands of it and its members, with a hash of the value."""

    def follow(self, write: Write) -> None:
        environment = self._coordinator().environment
        self._write = write
        self._followed = FollowedStore(environment.store, self)
        environment.store = self._followed
        self._coordinator().offsets.follow(self)

    def unfollow(self) -> None:
        if self._followed is not None:
            self._coordinator().environment.store = self._followed.store
            self._coordinator().offsets.follow(None)
        self._write = self._followed = None
        self._types, self._written = {}, {}

    def all_records(self, write: Write) -> Steps[None]:
        coordinator = self._coordinator()
        # What was on its way to the store before it was followed has arrived, or failed, after this.
        passed: Pending[None] = Pending()
        coordinator.environment.store.commit_offsets({}).then(lambda _: passed.resolve(None))
        yield from wait(passed)
        for group_id in list(coordinator.groups):
            group = coordinator.groups.get(group_id)
            if group is not None:
                yield from self._group(coordinator, group)
            for part in _parts(list(coordinator.offsets.committed(group_id))):
                committed = coordinator.offsets.committed(group_id)
                still = {partition: committed[partition] for partition in part if partition in committed}
                self.offsets_committed(group_id, still)
                yield None
            yield None

    def _group(self, coordinator: GroupCoordinator, group: Group) -> Steps[None]:
        group_id = group.group_id
        for part in _parts(members_of(group)) or ((),):
            if coordinator.groups.get(group_id) is not group:
                return  # it was deleted, or is another one by now
            state = state_of(group)
            if state is not None:
                found = {member_id: member_state_of(group, member_id) for member_id in part}
                self.group_saved(group_id, group.type, state, found)
            yield None

    # what happens

    def offsets_committed(self, group_id: str, offsets: Offsets) -> None:
        topic_id = self._coordinator().environment.topics.topic_id
        self._append(
            group_id,
            [
                offset_record(group_id, partition, committed, topic_id(partition.topic))
                for partition, committed in offsets.items()
            ],
        )

    def offsets_deleted(self, group_id: str, partitions: Collection[TopicPartition]) -> None:
        self._append(group_id, [(offset_key(group_id, partition), None) for partition in partitions])

    def group_saved(
        self, group_id: str, type: str, state: State, members: Mapping[str, State | None]
    ) -> None:
        if self._types.get(group_id, type) != type:
            self.group_deleted(group_id)
        self._types[group_id] = type
        written = self._written.setdefault(group_id, {})
        records: list[KeyedRecord] = []
        for member_id, member in members.items():
            records += records_of_member(type, group_id, member_id, member)
        records += records_of_group(type, group_id, state)
        changed: list[KeyedRecord] = []
        for key, value in records:
            if value is None:
                if written.pop(key, None) is not None:
                    changed.append((key, None))
            elif written.get(key) != hash(value):
                written[key] = hash(value)
                changed.append((key, value))
        self._append(group_id, changed)

    def group_deleted(self, group_id: str) -> None:
        self._types.pop(group_id, None)
        self._append(group_id, [(key, None) for key in self._written.pop(group_id, {})])

    def _append(self, group_id: str, records: list[KeyedRecord]) -> None:
        if records and self._write is not None:
            self._write(group_id, records)


def _parts(items: Sequence[T]) -> list[Sequence[T]]:
    """As many at a time as are written without a pause."""
    return [items[first : first + _AT_ONCE] for first in range(0, len(items), _AT_ONCE)]


class FollowedStore:
    """A group store that tells of groups that were stored or deleted."""

    def __init__(self, store: GroupStore, source: GroupSource) -> None:
        self.store = store
        self._source = source

    def save_group(
        self, group_id: str, type: str, state: State, members: Mapping[str, State | None]
    ) -> Pending[None]:
        saved = self.store.save_group(group_id, type, state, members)

        def tell(done: Pending[None]) -> None:
            if done.succeeded:
                self._source.group_saved(group_id, type, state, members)

        saved.then(tell)
        return saved

    def delete_group(self, group_id: str) -> Pending[None]:
        deleted = self.store.delete_group(group_id)

        def tell(done: Pending[None]) -> None:
            if done.succeeded:
                self._source.group_deleted(group_id)

        deleted.then(tell)
        return deleted

    # the rest as it is

    @property
    def journals(self) -> bool:
        return self.store.journals

    def load(self) -> StoredGroups:
        return self.store.load()

    def commit_offsets(self, groups: Mapping[str, Offsets]) -> Pending[None]:
        return self.store.commit_offsets(groups)

    def journal_offsets(self, groups: Mapping[str, Offsets]) -> None:
        self.store.journal_offsets(groups)

    def apply_journal(self) -> Pending[None]:
        return self.store.apply_journal()

    def close(self) -> None:
        self.store.close()

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> Pending[None]:
        return self.store.delete_offsets(group_id, partitions)

    def add_pending_offsets(self, producer_id: int, group_id: str, offsets: Offsets) -> Pending[None]:
        return self.store.add_pending_offsets(producer_id, group_id, offsets)

    def end_transaction(self, producer_id: int, *, commit: bool) -> Pending[None]:
        return self.store.end_transaction(producer_id, commit=commit)
