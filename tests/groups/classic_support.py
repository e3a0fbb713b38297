"""A group coordinator in simulated time, and the requests of classic members to it."""

from __future__ import annotations

from collections.abc import Iterable

from kbroker.catalog.memory_groups import MemoryGroupStore
from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.classic.protocol import (
    JoinRequest,
    JoinResult,
    LeaveResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from kbroker.coordinators.groups.coordinator import GroupCoordinator
from kbroker.coordinators.groups.environment import GroupEnvironment, GroupSettings
from kbroker.coordinators.groups.errors import GroupError, MemberIdRequired
from kbroker.coordinators.groups.store import GroupStore
from kbroker.pending import Pending
from kbroker.protocol.consumer_protocol import ConsumerProtocolSubscription, write

GROUP = "group"
RANGE = (("range", b"metadata"),)


def subscription(*topics: str) -> bytes:
    return write(ConsumerProtocolSubscription(topics=list(topics)), 1)


class FakeTopics:
    def __init__(self, **partitions: int) -> None:
        self.partitions = dict(partitions)

    def names(self) -> Iterable[str]:
        return self.partitions

    def partition_count(self, name: str) -> int | None:
        return self.partitions.get(name)

    def topic_id(self, name: str) -> bytes | None:
        return name.encode().ljust(16, b"\1") if name in self.partitions else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name in self.partitions if self.topic_id(name) == topic_id), None)


class SlowStore(MemoryGroupStore):
    """Writes are done when the test says so, in their order; or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Pending[None]] = []

    def finish(self, error: Exception | None = None) -> None:
        waiting, self.waiting = self.waiting, []
        for pending in waiting:
            if error is None:
                pending.resolve(None)
            else:
                pending.fail(error)

    def _later(self, _: Pending[None]) -> Pending[None]:
        self.waiting.append(Pending())
        return self.waiting[-1]

    def save_group(self, *arguments):
        return self._later(super().save_group(*arguments))

    def delete_group(self, *arguments):
        return self._later(super().delete_group(*arguments))

    def commit_offsets(self, *arguments):
        return self._later(super().commit_offsets(*arguments))

    def delete_offsets(self, *arguments):
        return self._later(super().delete_offsets(*arguments))

    def add_pending_offsets(self, *arguments):
        return self._later(super().add_pending_offsets(*arguments))

    def end_transaction(self, *arguments, **keywords):
        return self._later(super().end_transaction(*arguments, **keywords))


class Simulation:
    """One coordinator and its clock. Requests happen now; `advance` lets time pass, deadline by deadline."""

    def __init__(
        self,
        store: GroupStore | None = None,
        topics: FakeTopics | None = None,
        soon=lambda callback: callback(),
        **settings,
    ) -> None:
        self.now_ms = 1_000_000
        self.store = store or MemoryGroupStore()
        self.topics = topics or FakeTopics(orders=4, payments=4)
        self.soon = soon
        self.settings = GroupSettings(**settings)
        self.ids = 0
        self.restart()

    def restart(self) -> None:
        environment = GroupEnvironment(self.store, self.topics, self._new_id, self.settings, soon=self.soon)
        self.timers = environment.timers
        self.coordinator = GroupCoordinator(environment)
        self.coordinator.load(self.now_ms)

    def _new_id(self) -> str:
        self.ids += 1
        return f"id{self.ids}"

    def advance(self, milliseconds: int) -> None:
        end_ms = self.now_ms + milliseconds
        while (deadline_ms := self.coordinator.next_deadline()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.coordinator.tick(self.now_ms)
        self.now_ms = end_ms

    @property
    def group(self) -> ClassicGroup:
        group = self.coordinator.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    def join(self, member_id: str = "", *, protocols=RANGE, **overrides) -> Pending[JoinResult]:
        request = JoinRequest(
            **{
                "group_id": GROUP,
                "member_id": member_id,
                "group_instance_id": None,
                "client_id": "client",
                "client_host": "/127.0.0.1",
                "session_timeout_ms": 10_000,
                "rebalance_timeout_ms": 60_000,
                "protocol_type": "consumer",
                "protocols": protocols,
                **overrides,
            }
        )
        return self.coordinator.join_group(request, self.now_ms)

    def join_with_id(self, **overrides) -> tuple[str, Pending[JoinResult]]:
        """Both steps of KIP-394."""
        error = failure(self.join(**overrides))
        assert isinstance(error, MemberIdRequired)
        assert error.member_id
        return error.member_id, self.join(error.member_id, **overrides)

    def sync(
        self, member_id: str, generation_id: int, assignments: dict[str, bytes] | None = None, **overrides
    ) -> Pending[SyncResult]:
        request = SyncRequest(
            **{
                "group_id": GROUP,
                "member_id": member_id,
                "group_instance_id": None,
                "generation_id": generation_id,
                "protocol_type": None,
                "protocol_name": None,
                "assignments": assignments or {},
                **overrides,
            }
        )
        return self.coordinator.sync_group(request, self.now_ms)

    def heartbeat(self, member_id: str, generation_id: int, group_instance_id: str | None = None) -> None:
        self.coordinator.heartbeat(GROUP, member_id, group_instance_id, generation_id, self.now_ms)

    def leave(self, *members: LeavingMember | str) -> list[LeaveResult]:
        leaving = [LeavingMember(m) if isinstance(m, str) else m for m in members]
        return self.coordinator.leave_group(GROUP, leaving, self.now_ms).result()

    def stable_group(self, size: int = 2, **overrides) -> list[str]:
        """A group with members, settled; returns their ids, the leader's first."""
        joins = [self.join_with_id(**overrides) for _ in range(size)]
        self.advance(100)
        self.settle([join.result() for _, join in joins])
        leader = joins[0][1].result().leader
        return sorted((member_id for member_id, _ in joins), key=lambda member_id: member_id != leader)

    def settle(self, joined: list[JoinResult]) -> None:
        """All sync, the leader first; everybody is assigned its own member id."""
        assignments = {result.member_id: result.member_id.encode() for result in joined}
        for result in sorted(joined, key=lambda result: result.member_id != result.leader):
            own = assignments if result.member_id == result.leader else {}
            assert self.sync(result.member_id, result.generation_id, own).done
        assert self.group.state == "Stable"

    def rejoin_all(self, member_ids: Iterable[str], **overrides) -> list[JoinResult]:
        joins = [self.join(member_id, **overrides) for member_id in member_ids]
        return [join.result() for join in joins]


def failure(pending: Pending) -> GroupError:
    assert pending.done
    try:
        result = pending.result()
    except GroupError as error:
        return error
    raise AssertionError(f"no failure but {result}")
