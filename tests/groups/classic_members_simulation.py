"""Members of a classic group as clients are: they join, assign, work, commit; die, pause, lose answers.
answers.

`Crowd.step` lets one of them do the next thing it would do. After each step the promises hold:
- no partition has two owners in one generation,
- the generation of a coordinator only grows,
- a committed offset does not go back.
`Crowd.calm_down` lets everybody alive do its work undisturbed: then the group is stable and every partition
is owned.
"""

from __future__ import annotations

import json
from random import Random

from classic_support import GROUP, FakeTopics, Simulation, subscription

from kbroker.coordinators.groups.errors import (
    FencedInstanceId,
    GroupError,
    IllegalGeneration,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.pending import Pending

HEARTBEAT_INTERVAL_MS = 3_000
PROTOCOLS = (("roundrobin", subscription("orders")),)


class Member:
    def __init__(self, name: str, instance_id: str | None = None) -> None:
        self.name = name
        self.instance_id = instance_id
        self.alive = True
        self.paused_until_ms = 0
        self.forget()

    def forget(self) -> None:
        """A new start: nothing is known of earlier membership."""
        self.member_id = ""
        self.generation_id = -1
        self.join_again()

    def join_again(self) -> None:
        self.phase = "join"
        self.answer: Pending | None = None
        self.members: list[str] = []
        self.positions: dict[int, int] = {}
        self.next_heartbeat_ms = 0
        self.has_worked = False
        """Since the last heartbeat. One that wakes up from a pause first commits what it has."""

    @property
    def identity(self) -> str:
        return self.instance_id or self.member_id


class Crowd:
    def __init__(self, partitions: int, *, session_timeout_ms: int, rebalance_timeout_ms: int) -> None:
        self.simulation = Simulation(topics=FakeTopics(orders=partitions))
        self._timeouts = {
            "session_timeout_ms": session_timeout_ms,
            "rebalance_timeout_ms": rebalance_timeout_ms,
        }
        self.partitions = partitions
        self.members: list[Member] = []
        self._owners: dict[int, dict[int, str]] = {}
        self._generation_id = 0
        self._committed: dict[int, int] = {}
        self._restarts = 0

    # what happens to members

    def add(self, *, static: bool = False) -> Member:
        name = f"m{len(self.members)}"
        self.members.append(Member(name, name if static else None))
        return self.members[-1]

    def die(self, member: Member) -> None:
        """It stops without a word."""
        member.alive = False
        member.answer = None

    def leave(self, member: Member) -> None:
        if member.alive and member.member_id:
            self.simulation.leave(member.member_id)
        self.die(member)
        self.check()

    def pause(self, member: Member, milliseconds: int) -> None:
        member.paused_until_ms = self.simulation.now_ms + milliseconds

    def reboot(self, member: Member) -> None:
        """The process starts anew: as another dynamic member, or the same static one."""
        member.alive = True
        member.forget()

    def add_twin(self, member: Member) -> None:
        """Another process is started with the same instance id."""
        if member.instance_id is not None:
            self.members.append(Member(f"{member.name}+", member.instance_id))

    def lose_answer(self, member: Member) -> None:
        """The connection breaks; the member asks again."""
        if member.answer is not None:
            member.answer.abandon()
            member.answer = None

    def restart_coordinator(self) -> None:
        self.simulation.restart()
        self._generation_id = 0
        for member in self.members:
            member.answer = None

    def advance(self, milliseconds: int) -> None:
        self.simulation.advance(milliseconds)
        self.check()

    # what members do

    def step(self, member: Member) -> None:
        simulation = self.simulation
        if not member.alive or simulation.now_ms < member.paused_until_ms:
            return
        if member.answer is not None:
            if member.answer.done:
                answer, member.answer = member.answer, None
                self._take_answer(member, answer)
        elif member.phase == "join":
            member.answer = simulation.join(
                member.member_id,
                protocols=PROTOCOLS,
                group_instance_id=member.instance_id,
                **self._timeouts,
            )
        elif member.phase == "sync":
            member.answer = simulation.sync(
                member.member_id,
                member.generation_id,
                self._assign(member.members),
                group_instance_id=member.instance_id,
            )
        elif member.has_worked and simulation.now_ms >= member.next_heartbeat_ms:
            self._heartbeat(member)
        else:
            self._work(member)
        self.check()

    def repeat(self, member: Member) -> None:
        """The member's request reaches the coordinator twice."""
        self.lose_answer(member)
        self.step(member)

    def _take_answer(self, member: Member, answer: Pending) -> None:
        try:
            result = answer.result()
        except GroupError as error:
            self._take_error(member, error)
            return
        if member.phase == "join":
            member.member_id = result.member_id
            member.generation_id = result.generation_id
            member.members = [m.member_id for m in result.members] if not result.skip_assignment else []
            member.phase = "sync"
        else:
            self._own(member, json.loads(result.assignment or b"[]"))

    def _take_error(self, member: Member, error: GroupError) -> None:
        if isinstance(error, MemberIdRequired):
            assert error.member_id
            member.member_id = error.member_id
        elif isinstance(error, UnknownMemberId):
            member.forget()
        elif isinstance(error, FencedInstanceId):
            member.alive = False
        else:
            assert isinstance(error, RebalanceInProgress | IllegalGeneration), error
            member.join_again()

    def _assign(self, member_ids: list[str]) -> dict[str, bytes]:
        if not member_ids:
            return {}
        return {
            member_id: json.dumps(list(range(number, self.partitions, len(member_ids)))).encode()
            for number, member_id in enumerate(sorted(member_ids))
        }

    def _own(self, member: Member, partitions: list[int]) -> None:
        owners = self._owners.setdefault(member.generation_id, {})
        for partition in partitions:
            owner = owners.setdefault(partition, member.identity)
            assert owner == member.identity, f"{partition} is owned by {owner} and {member.identity}"
        member.phase = "stable"
        member.positions = {partition: self._committed_offset(partition) for partition in partitions}
        member.next_heartbeat_ms = self.simulation.now_ms + HEARTBEAT_INTERVAL_MS

    def _heartbeat(self, member: Member) -> None:
        member.has_worked = False
        member.next_heartbeat_ms = self.simulation.now_ms + HEARTBEAT_INTERVAL_MS
        try:
            self.simulation.heartbeat(member.member_id, member.generation_id, member.instance_id)
        except GroupError as error:
            self._take_error(member, error)

    def _work(self, member: Member) -> None:
        """Read a little further everywhere, and commit it."""
        member.has_worked = True
        for partition in member.positions:
            member.positions[partition] += 1
        request = CommitRequest(
            GROUP,
            [NewOffset("orders", partition, offset) for partition, offset in member.positions.items()],
            member.member_id,
            member.instance_id,
            member.generation_id,
        )
        offsets = self.simulation.coordinator.offsets
        pending = offsets.commit(request, self.simulation.now_ms)
        offsets.close()  # commits of many members at once would wait for each other
        for error in set(pending.result().values()):
            self._take_error(member, error)

    # what must hold

    def _committed_offset(self, partition: int) -> int:
        key = TopicPartition("orders", partition)
        result = self.simulation.coordinator.offsets.fetch(GROUP, [key]).result()[key]
        return result.offset if isinstance(result, CommittedOffset) else 0

    def check(self) -> None:
        group = self.simulation.coordinator.groups.get(GROUP)
        if group is not None:
            assert self.simulation.group.generation_id >= self._generation_id
            self._generation_id = self.simulation.group.generation_id

    def check_offsets(self) -> None:
        for partition in range(self.partitions):
            offset = self._committed_offset(partition)
            assert offset >= self._committed.get(partition, 0), f"the offset of {partition} went back"
            self._committed[partition] = offset

    def calm_down(self) -> None:
        """Nothing goes wrong any more: after a while all is well."""
        alive = [member for member in self.members if member.alive]
        for member in alive:
            member.paused_until_ms = 0
        for _ in range(160):
            for member in alive:
                self.step(member)
            self.advance(1_000)
            self.check_offsets()
        if not alive:
            assert GROUP not in self.simulation.coordinator.groups or self.simulation.group.state == "Empty"
            return
        assert self.simulation.group.state == "Stable"
        current = [member for member in alive if member.alive]
        assert {member.phase for member in current} == {"stable"}
        assert {m.member_id for m in self.simulation.group.members} == {m.member_id for m in current}
        owned = [partition for member in current for partition in member.positions]
        assert sorted(owned) == list(range(self.partitions))


def live_through(random: Random, members: int, partitions: int, rounds: int, *, static: bool) -> Crowd:
    """Members come, and everything happens to them that can."""
    crowd = Crowd(
        partitions,
        session_timeout_ms=random.choice((8_000, 30_000)),
        rebalance_timeout_ms=random.choice((5_000, 20_000)),
    )
    for _ in range(rounds):
        if len(crowd.members) < members and random.random() < 0.5:
            for _ in range(random.randint(1, members // 4)):
                crowd.add(static=static and random.random() < 0.5)
        if not crowd.members:
            continue
        for member in random.sample(crowd.members, min(len(crowd.members), 20)):
            chance = random.random()
            if chance < 0.005:
                crowd.die(member)
            elif chance < 0.01:
                crowd.leave(member)
            elif chance < 0.03:
                crowd.pause(member, random.randint(1_000, 40_000))
            elif chance < 0.04:
                crowd.reboot(member)
            elif chance < 0.042:
                crowd.add_twin(member)
            elif chance < 0.06:
                crowd.lose_answer(member)
            elif chance < 0.10:
                crowd.repeat(member)
        for member in random.sample(crowd.members, len(crowd.members)):
            crowd.step(member)
            if random.random() < 0.5:
                crowd.step(member)
        if random.random() < 0.01:
            crowd.restart_coordinator()
        crowd.advance(random.choice((0, 10, 100, 1_000, 3_000)))
        crowd.check_offsets()
    return crowd
