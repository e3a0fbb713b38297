"""Offsets of groups: committed, fetched, deleted, expired; in a transaction or not.

Invariants: an offset can be fetched once it is stored, never before, so that no fetched offset is lost in a
crash; with `require_stable` a fetch waits for the commits under way. Changes show in the order they were
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    GroupError,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
    OffsetMetadataTooLarge,
    StaleMemberEpoch,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from kbroker.coordinators.groups.group import Group
from kbroker.coordinators.groups.offsets.commit_grouping import Commit, CommitErrors, CommitGrouping
from kbroker.coordinators.groups.offsets.table import OffsetFollower, OffsetTable
from kbroker.coordinators.groups.store import (
    NO_TOPIC_ID,
    CommittedOffset,
    GroupStore,
    Offsets,
    StoredGroups,
    TopicPartition,
)
from kbroker.pending import Pending

T = TypeVar("T")

BROKER_RETENTION = -1
"""The retention time of a commit that has none of its own."""
_LATEST_MS = 2**63 - 1
_FIRST_VERSION_WITH_NOT_FOUND = 9
"""From OffsetCommit 9 on a missing group has an error of its own."""

DeleteResults = dict[TopicPartition, GroupError | None]
FetchResults = dict[TopicPartition, CommittedOffset | GroupError | None]


class NewOffset(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: bytes = NO_TOPIC_ID


@dataclass(slots=True)
class CommitRequest:
    group_id: str
    offsets: Sequence[NewOffset]
    member_id: str = ""
    group_instance_id: str | None = None
    generation_or_epoch: int = -1
    api_version: int = 9
    retention_ms: int = BROKER_RETENTION


_LASTING = frozenset(("share",))
"""The types of groups whose progress is no committed offset: they stay until somebody deletes them."""


class Groups(Protocol):
    """Where the offset manager finds the groups."""

    @property
    def groups(self) -> dict[str, Group]: ...

    def get_or_create_simple(self, group_id: str, now_ms: int) -> Group: ...

    def forget_if_empty(self, group: Group) -> Pending[None]: ...


class OffsetManager:
    def __init__(self, environment: GroupEnvironment, groups: Groups) -> None:
        self._environment = environment
        self._groups = groups
        self._table = OffsetTable()
        self._commits = CommitGrouping(
            environment.store, environment.timers, environment.soon, self._commits_written
        )
        self._sequence = 0
        self._last_write: dict[str, Pending[None]] = {}

    def load(self, stored: StoredGroups) -> Collection[str]:
        """Take over what was stored; returns the ids of the groups that have offsets."""
        self._sequence = self._table.load(stored)
        for topic in self._table.topics():
            if self._environment.topics.partition_count(topic) is None:
                # The last stop came between the topic's deletion and that of its offsets.
                self.topic_deleted(topic)
        return self._table.group_ids()

    def close(self) -> None:
        """Store what is held back."""
        self._commits.close()

    def group_ids(self) -> Collection[str]:
        """Groups with offsets."""
        return self._table.group_ids()

    # who follows

    def follow(self, follower: OffsetFollower | None) -> None:
        """Tell it of all that changes from now on; None: nobody."""
        self._table.follower = follower

    def committed(self, group_id: str) -> Offsets:
        """What counts now, whatever is on its way."""
        return self._table.of_group(group_id)

    # OffsetCommit, TxnOffsetCommit

    def commit(self, request: CommitRequest, now_ms: int) -> Pending[CommitErrors]:
        errors, offsets = self._accept(request, now_ms, transactional=False)
        commit = Commit(request.group_id, offsets, errors)
        if offsets:
            self._commits.add((request.group_id, request.member_id), commit, now_ms)
        else:
            commit.resolve(errors)
        return commit

    def _commits_written(self, commits: list[Commit], written: Pending[None]) -> None:
        """They show once they are written, each after what was asked for before it."""
        if not written.done:
            for commit in commits:
                self._write(commit.group_id, written)
            written.then(lambda _: self._show(commits, written))
            return
        for commit in [commit for commit in commits if commit.group_id in self._last_write]:
            commits.remove(commit)
            before = self._last_write[commit.group_id]
            before.then(lambda _, commit=commit: self._show([commit], written))  # type: ignore[misc]
        self._show(commits, written)

    def _show(self, commits: list[Commit], written: Pending[None]) -> None:
        try:
            written.result()
        except Exception as error:
            for commit in commits:
                commit.fail(_not_stored(error))
            return
        for commit in commits:
            self._table.commit(commit.group_id, commit.offsets)
        for commit in commits:
            commit.resolve(commit.errors)

    def commit_in_transaction(
        self, producer_id: int, request: CommitRequest, now_ms: int
    ) -> Pending[CommitErrors]:
        """Keep offsets until the producer's transaction ends."""
        if not request.group_id:
            raise InvalidGroupId("a transactional commit needs a group")
        errors, offsets = self._accept(request, now_ms, transactional=True)
        if not offsets:
            return Pending.resolved(errors)
        group_id = request.group_id
        written = self._write(group_id, self._store().add_pending_offsets(producer_id, group_id, offsets))
        return _when_written(written, errors, lambda: self._table.add_pending(producer_id, group_id, offsets))

    def end_transaction(self, producer_id: int, *, commit: bool) -> Pending[None]:
        """The producer's transaction has ended: its offsets count now, or never."""
        written = self._store().end_transaction(producer_id, commit=commit)
        return _when_written(written, None, lambda: self._table.end_transaction(producer_id, commit=commit))

    def _accept(
        self, request: CommitRequest, now_ms: int, *, transactional: bool
    ) -> tuple[CommitErrors, dict[TopicPartition, CommittedOffset]]:
        """The offsets that may be committed, and why others may not."""
        errors: CommitErrors = {}
        offsets: dict[TopicPartition, CommittedOffset] = {}
        known = []
        partition_count = self._environment.topics.partition_count
        for new in request.offsets:
            if 0 <= new.partition < (partition_count(new.topic) or 0):
                known.append(new)
            else:
                partition = TopicPartition(new.topic, new.partition)
                errors[partition] = UnknownTopicOrPartition(f"{new.topic}-{new.partition} does not exist")
        if not known:
            return errors, offsets
        try:
            group = self._group_of(request, now_ms, transactional=transactional)
            check = group.validate_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_or_epoch,
                api_version=request.api_version,
                transactional=transactional,
            )
            if check is not None:
                # One partition that may not be committed fails the whole request.
                for new in known:
                    if not self._is_too_long(new.metadata):
                        check(self._topic_id(new), new.partition)
        except GroupError as error:
            if transactional and isinstance(error, StaleMemberEpoch):
                error = IllegalGeneration(str(error))
            errors.update((TopicPartition(new.topic, new.partition), error) for new in known)
            return errors, offsets
        if not transactional:
            group.offsets_committed(request.member_id, now_ms)
        self._sequence += 1
        expire_ms = None
        if request.retention_ms != BROKER_RETENTION:
            expire_ms = min(now_ms + request.retention_ms, _LATEST_MS)
        for new in known:
            partition = TopicPartition(new.topic, new.partition)
            if self._is_too_long(new.metadata):
                errors[partition] = OffsetMetadataTooLarge("the metadata of the offset is too long")
            else:
                offsets[partition] = CommittedOffset(
                    new.offset,
                    new.leader_epoch,
                    new.metadata,
                    now_ms,
                    expire_ms,
                    new.topic_id,
                    self._sequence,
                )
        return errors, offsets

    def _group_of(self, request: CommitRequest, now_ms: int, *, transactional: bool) -> Group:
        """Who commits without a generation needs no group: a simple one is made."""
        group = self._groups.groups.get(request.group_id)
        if group is None and request.generation_or_epoch >= 0:
            if transactional or request.api_version < _FIRST_VERSION_WITH_NOT_FOUND:
                raise IllegalGeneration(f"Group {request.group_id} not found.")
            raise GroupIdNotFound(f"Group {request.group_id} not found.")
        return group or self._groups.get_or_create_simple(request.group_id, now_ms)

    # OffsetFetch

    def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
        require_stable: bool = False,
    ) -> Pending[FetchResults]:
        """The committed offsets of these partitions (None where there is none), or of all that have one."""
        result: Pending[FetchResults] = Pending()

        def read() -> None:
            try:
                result.resolve(
                    self._read(group_id, partitions, member_id, member_epoch, require_stable=require_stable)
                )
            except GroupError as error:
                result.fail(error)

        if require_stable:
            self._commits.flush()
        under_way = self._last_write.get(group_id)
        if require_stable and under_way is not None:
            under_way.then(lambda _: read())
        else:
            read()
        return result

    def _read(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        member_id: str | None,
        member_epoch: int,
        *,
        require_stable: bool,
    ) -> FetchResults:
        group = self._groups.groups.get(group_id)
        if group is None:
            return dict.fromkeys(partitions or ())
        group.validate_offset_fetch(member_id, member_epoch)
        offsets = self._table.of_group(group_id)
        results: FetchResults = {}
        unstable = require_stable and self._table.has_transaction(group_id)
        for partition in offsets if partitions is None else partitions:
            if unstable and self._table.has_pending(group_id, partition):
                results[partition] = UnstableOffsetCommit("a transaction has yet to decide on this offset")
            else:
                results[partition] = offsets.get(partition)
        return results

    # OffsetDelete, expiry, topics that go

    def delete(self, group_id: str, partitions: Sequence[TopicPartition]) -> Pending[DeleteResults]:
        if not group_id:
            raise InvalidGroupId("no group is named")
        group = self._groups.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        group.validate_offset_delete()
        results: DeleteResults = {}
        for partition in partitions:
            if not self._exists(partition):
                results[partition] = UnknownTopicOrPartition(f"{partition} does not exist")
            elif group.is_subscribed_to(partition.topic):
                results[partition] = GroupSubscribedToTopic(f"the group reads {partition.topic}")
            else:
                results[partition] = None
        wanted = {partition for partition, error in results.items() if error is None}
        return _when_written(self._delete(group_id, wanted), results, lambda: None)

    def topic_deleted(self, topic: str) -> None:
        """Its offsets go too, also those that are on their way to the store."""

        def delete(group_id: str) -> None:
            gone = self._table.partitions_where(group_id, lambda partition: partition.topic == topic)
            self._delete(group_id, gone)

        self._commits.flush()
        for group_id in self._table.group_ids() - self._last_write.keys():
            delete(group_id)
        for group_id, under_way in list(self._last_write.items()):
            under_way.then(lambda _, group_id=group_id: delete(group_id))  # type: ignore[misc]

    def delete_group(self, group_id: str) -> Pending[None]:
        """Delete the group with all its offsets from the store, and then here."""
        written = self._write(group_id, self._store().delete_group(group_id))
        return _when_written(written, None, lambda: self._table.delete_group(group_id))

    def expire(self, now_ms: int) -> None:
        """Delete the offsets whose retention is over, and the groups that have neither offsets nor members
        left.
        """
        self._commits.flush()
        for group in list(self._groups.groups.values()):
            if group.group_id in self._last_write:
                continue  # what is being written may be a younger offset
            offsets = self._table.of_group(group.group_id)
            expired = {
                partition
                for partition, committed in offsets.items()
                if self._is_expired(group, partition, committed, now_ms)
            }
            nothing_left = len(expired) == len(offsets) and not self._table.has_transaction(group.group_id)
            if nothing_left and group.is_empty and group.type not in _LASTING:
                self._groups.forget_if_empty(group)
            elif expired:
                self._delete(group.group_id, expired)

    def _is_expired(
        self, group: Group, partition: TopicPartition, committed: CommittedOffset, now_ms: int
    ) -> bool:
        start_ms = group.offset_retention_start_ms(committed)
        if start_ms is None or group.is_subscribed_to(partition.topic):
            return False
        if self._table.has_pending(group.group_id, partition):
            return False
        if committed.expire_timestamp_ms is not None:
            return now_ms >= committed.expire_timestamp_ms
        return now_ms - start_ms >= self._environment.settings.offsets_retention_minutes * 60_000

    def _delete(self, group_id: str, partitions: Collection[TopicPartition]) -> Pending[None]:
        existing = self._table.partitions_where(group_id, lambda partition: partition in partitions)
        if not existing:
            return Pending.resolved(None)
        written = self._write(group_id, self._store().delete_offsets(group_id, existing))
        return _when_written(written, None, lambda: self._table.delete(group_id, existing))

    # helpers

    def _exists(self, partition: TopicPartition) -> bool:
        count = self._environment.topics.partition_count(partition.topic)
        return count is not None and 0 <= partition.partition < count

    def _is_too_long(self, metadata: str) -> bool:
        return len(metadata) > self._environment.settings.offset_metadata_max_bytes

    def _topic_id(self, new: NewOffset) -> bytes | None:
        return self._environment.topics.topic_id(new.topic) if new.topic_id == NO_TOPIC_ID else new.topic_id

    def _store(self) -> GroupStore:
        """The store, for writes that come after all commits so far."""
        self._commits.flush()
        return self._environment.store

    def _write(self, group_id: str, written: Pending[None]) -> Pending[None]:
        """Remember the group's last write until it is done."""
        if not written.done:
            self._last_write[group_id] = written
            written.then(lambda _: self._forget_write(group_id, written))
        return written

    def _forget_write(self, group_id: str, written: Pending[None]) -> None:
        if self._last_write.get(group_id) is written:
            del self._last_write[group_id]


def _when_written(written: Pending[None], value: T, apply: Callable[[], None]) -> Pending[T]:
    """Once written, apply the change here and give the value."""
    result: Pending[T] = Pending()

    def settle(done: Pending[None]) -> None:
        try:
            done.result()
        except Exception as error:
            result.fail(_not_stored(error))
        else:
            apply()
            result.resolve(value)

    written.then(settle)
    return result


def _not_stored(error: Exception) -> CoordinatorNotAvailable:
    return CoordinatorNotAvailable(f"the offsets could not be stored: {error}")
