"""Members of both protocols that come and go in one group, which changes its protocol with them: at every
step no partition has two owners, and when things calm down each has one.
"""

from __future__ import annotations

from consumer_support import Names
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from migration_support import Broker, Classic

from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    FencedMemberEpoch,
    GroupError,
    GroupIdNotFound,
    IllegalGeneration,
    RebalanceInProgress,
    UnknownMemberId,
)

PARTITIONS = 4


class ConsumerClient:
    """Does at once what it is told."""

    def __init__(self, broker: Broker, number: int) -> None:
        self.broker = broker
        self.member_id = f"consumer-{number}"
        self.epoch = 0
        self.owned: Names = {}

    def step(self) -> None:
        try:
            result = self.broker.consumer_heartbeat(self.member_id, self.epoch, self.owned)
        except (UnknownMemberId, FencedMemberEpoch, GroupIdNotFound):
            self.epoch, self.owned = 0, {}
            return
        self.epoch = result.member_epoch
        assigned = self.broker.assigned(result)
        if assigned is not None:
            self.owned = assigned

    def leave(self) -> None:
        self.broker.consumer_heartbeat(self.member_id, -1)

    def is_in_good_standing(self) -> bool:
        group = self.broker.coordinator.groups.get("g")
        if group is None or isinstance(group, ClassicGroup) or self.member_id not in group.members:
            return False
        return self.epoch == group.members[self.member_id].member_epoch


class ClassicClient(Classic):
    """An eager consumer: it gives up everything before it joins.

    As the leader it deals the partitions out in turn.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, session_timeout_ms=10_000, rebalance_timeout_ms=10_000)
        self.phase = "join"

    def step(self) -> None:
        try:
            getattr(self, f"do_{self.phase}")()
        except RebalanceInProgress:
            self.give_up()
        except (UnknownMemberId, IllegalGeneration, CoordinatorNotAvailable) as error:
            self.give_up()
            if isinstance(error, UnknownMemberId):
                self.member_id = ""

    def give_up(self) -> None:
        self.owned = {}
        self.phase = "join"

    def do_join(self) -> None:
        self.owned = {}
        self.phase = "wait"
        self.join()

    def do_wait(self) -> None:
        if self.waiting is not None and self.waiting.done:
            result = self.joined()
            dealt = {
                member.member_id: {"t": set(range(number, PARTITIONS, len(result.members)))}
                for number, member in enumerate(result.members)
            }
            self.start_sync(**dealt)
            self.phase = "synced"

    def do_synced(self) -> None:
        if self.syncing is not None and self.syncing.done:
            self.owned = self.synced()
            self.phase = "heartbeat"

    def do_heartbeat(self) -> None:
        self.heartbeat()

    def is_in_good_standing(self) -> bool:
        group = self.broker.coordinator.groups.get("g")
        if group is None or self.member_id not in group.members:
            return False
        if isinstance(group, ClassicGroup):
            return self.generation_id == group.generation_id
        return self.generation_id == group.members[self.member_id].member_epoch


class Simulation(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.broker = Broker()
        self.clients: list[ConsumerClient | ClassicClient] = []
        self.count = 0

    some = st.integers(0, 100)
    have_clients = precondition(lambda self: self.clients)

    def pick(self, number: int) -> ConsumerClient | ClassicClient:
        return self.clients[number % len(self.clients)]

    @rule(classic=st.booleans())
    def join(self, classic: bool) -> None:
        self.count += 1
        self.clients.append(
            ClassicClient(self.broker) if classic else ConsumerClient(self.broker, self.count)
        )
        self.clients[-1].step()

    @have_clients
    @rule(number=some)
    def step(self, number: int) -> None:
        self.pick(number).step()

    @rule(times=st.integers(1, 3))
    def everybody_steps(self, times: int) -> None:
        for _ in range(times):
            for client in self.clients:
                client.step()

    @have_clients
    @rule(number=some)
    def leave(self, number: int) -> None:
        client = self.pick(number)
        self.clients.remove(client)
        try:
            client.leave()
        except GroupError:
            return

    @have_clients
    @rule(number=some)
    def die(self, number: int) -> None:
        self.clients.remove(self.pick(number))

    @rule(milliseconds=st.sampled_from([10, 200, 3_000, 11_000, 46_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.broker.pass_time(milliseconds)

    @rule()
    def restart(self) -> None:
        self.broker = self.broker.restarted()
        for client in self.clients:
            client.broker = self.broker
            if isinstance(client, ClassicClient) and client.phase in ("wait", "synced"):
                client.give_up()

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [
            partition
            for client in getattr(self, "clients", ())
            if client.is_in_good_standing()
            for partition in client.owned.get("t", ())
        ]
        assert len(owned) == len(set(owned))

    def teardown(self) -> None:
        if not getattr(self, "clients", None):
            return
        for _ in range(120):
            self.broker.pass_time(500)
            for client in self.clients:
                client.step()
        assert self.broker.group.state == "Stable"
        self.no_partition_has_two_owners()
        assert {p for client in self.clients for p in client.owned.get("t", ())} == set(range(PARTITIONS))
        classic = all(isinstance(client, ClassicClient) for client in self.clients)
        assert self.broker.group.type == ("classic" if classic else "consumer")


Simulation.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestSimulation = Simulation.TestCase
