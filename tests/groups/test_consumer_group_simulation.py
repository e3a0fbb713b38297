"""Consumer groups under everything that happens: members that come, go, die and pause, heartbeats lost on
either way, topics that change, restarts of the broker. At every step no partition has two owners; when things
calm down, each has one.
"""

from __future__ import annotations

import contextlib

from consumer_support import FakeTopics, Names, World
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings
from kbroker.coordinators.groups.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupError,
    UnknownMemberId,
    UnreleasedInstanceId,
)

TOPICS = ("a", "b", "c")


class Client:
    """A consumer as the clients implement it.

    It reports what it owns when that has changed, and everything after a failure.
    """

    def __init__(self, number: int, topics: frozenset[str], instance_id: str | None) -> None:
        self.number = number
        self.member_id = f"m{number}"
        self.instance_id = instance_id
        self.topics = topics
        self.epoch = 0
        self.owned: Names = {}
        self.told: Names = {}
        self.reported: Names | None = None
        self.full = True
        self.away = False

    def heartbeat(self, world: World, *, answer_lost: bool = False) -> None:
        fields = {}
        if self.full:
            fields = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": sorted(self.topics)}
        owned = self.owned if self.full or self.owned != self.reported else None
        try:
            result = world.heartbeat(
                self.member_id, self.epoch, owned, instance_id=self.instance_id, **fields
            )
        except (FencedMemberEpoch, UnknownMemberId, FencedInstanceId, UnreleasedInstanceId):
            self.start_again()
            return
        if answer_lost:
            self.full = True
            return
        assert result.member_epoch >= self.epoch, "a member's epoch went back"
        self.epoch = result.member_epoch
        self.full = False
        self.reported = self.owned if owned is not None else self.reported
        assignment = world.assigned(result)
        if assignment is not None:
            self.told = assignment

    def do_as_told(self) -> None:
        """Give up and take, as the callbacks of a client do when they are done."""
        self.owned = self.told

    def start_again(self) -> None:
        self.epoch = 0
        self.owned, self.told, self.reported = {}, {}, None
        self.full = True

    def is_in_good_standing(self, world: World) -> bool:
        """Whether the coordinator would accept its next heartbeat.

        Whoever it would fence cannot commit either.
        """
        member = world.group().members.get(self.member_id) if "g" in world.groups else None
        if member is None or self.epoch <= 0 or self.away:
            return False
        if self.epoch == member.member_epoch:
            return True
        return self.epoch == member.previous_member_epoch and member.holds_only(world.by_id(self.owned))


class Simulation(RuleBasedStateMachine):
    @initialize(
        partitions=st.tuples(*[st.integers(1, 6)] * len(TOPICS)), interval_ms=st.sampled_from([0, 100, 1_000])
    )
    def start(self, partitions: tuple[int, ...], interval_ms: int) -> None:
        topics = FakeTopics(**dict(zip(TOPICS, partitions, strict=True)))
        self.world = World(topics, ConsumerGroupSettings(assignment_interval_ms=interval_ms))
        self.clients: list[Client] = []
        self.count = 0
        self.group_epoch = 0

    def pick(self, number: int) -> Client:
        return self.clients[number % len(self.clients)]

    some = st.integers(0, 100)
    have_clients = precondition(lambda self: self.clients)

    @rule(topics=st.frozensets(st.sampled_from(TOPICS), min_size=1), static=st.booleans())
    def join(self, topics: frozenset[str], static: bool) -> None:
        self.count += 1
        client = Client(self.count, topics, f"i{self.count}" if static else None)
        self.clients.append(client)
        client.heartbeat(self.world)

    @have_clients
    @rule(number=some)
    def heartbeat(self, number: int) -> None:
        if not self.pick(number).away:
            self.pick(number).heartbeat(self.world)

    @have_clients
    @rule(number=some)
    def heartbeat_whose_answer_is_lost(self, number: int) -> None:
        if not self.pick(number).away:
            self.pick(number).heartbeat(self.world, answer_lost=True)

    @have_clients
    @rule(number=some)
    def heartbeat_that_is_lost(self, number: int) -> None:
        self.pick(number).full = True

    @have_clients
    @rule(number=some)
    def do_as_told(self, number: int) -> None:
        self.pick(number).do_as_told()

    @have_clients
    @rule(number=some)
    def everybody_does_as_told_but(self, number: int) -> None:
        for client in self.clients:
            if client is not self.pick(number) and not client.away:
                client.do_as_told()
                client.heartbeat(self.world)

    @have_clients
    @rule(number=some, topics=st.frozensets(st.sampled_from(TOPICS), min_size=1))
    def subscribe_to_others(self, number: int, topics: frozenset[str]) -> None:
        client = self.pick(number)
        client.topics = topics
        client.told = {topic: held for topic, held in client.told.items() if topic in topics}
        client.full = True

    @have_clients
    @rule(number=some)
    def leave(self, number: int) -> None:
        client = self.pick(number)
        self.clients.remove(client)
        with contextlib.suppress(GroupError):
            self.world.leave(client.member_id, instance_id=client.instance_id)

    @have_clients
    @rule(number=some)
    def die(self, number: int) -> None:
        self.clients.remove(self.pick(number))

    @have_clients
    @rule(number=some)
    def leave_for_a_while(self, number: int) -> None:
        client = self.pick(number)
        if client.instance_id is None or client.away or client.epoch == 0:
            return
        client.start_again()
        try:
            self.world.leave(client.member_id, -2, instance_id=client.instance_id)
        except (UnknownMemberId, FencedInstanceId):
            return
        client.away = True

    @have_clients
    @rule(number=some)
    def come_back(self, number: int) -> None:
        client = self.pick(number)
        if client.away:
            self.count += 1
            client.away = False
            client.member_id = f"m{self.count}"
            client.heartbeat(self.world)

    @rule(milliseconds=st.sampled_from([1, 50, 100, 1_000, 20_000, 31_000, 46_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.world.pass_time(milliseconds)

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 3))
    def grow_topic(self, topic: str, more: int) -> None:
        count = self.world.topics.partition_count(topic)
        if count is None:
            self.world.create_topic(topic, more)
        elif count < 12:
            self.world.grow_topic(topic, count + more)

    @rule(topic=st.sampled_from(TOPICS))
    def delete_topic(self, topic: str) -> None:
        topic_id = self.world.topics.topic_id(topic)
        if topic_id is None:
            return
        self.world.delete_topic(topic)
        for client in self.clients:  # what a client held of it is known by its id from now on
            for names in (client.owned, client.told):
                if topic in names:
                    names[topic_id.hex()] = names.pop(topic)

    @rule()
    def restart(self) -> None:
        self.world = self.world.restarted()

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[tuple[str, int], Client] = {}
        for client in self.clients if hasattr(self, "clients") else ():
            if client.is_in_good_standing(self.world):
                for topic, partitions in client.owned.items():
                    for partition in partitions:
                        other = owners.setdefault((topic, partition), client)
                        assert other is client, (
                            f"{topic}-{partition}: {other.member_id} and {client.member_id}"
                        )

    @invariant()
    def the_group_epoch_only_grows(self) -> None:
        if hasattr(self, "world") and "g" in self.world.groups:
            assert self.world.group().group_epoch >= self.group_epoch
            self.group_epoch = self.world.group().group_epoch
            assert self.world.group().assignment_epoch <= self.group_epoch

    def teardown(self) -> None:
        if not getattr(self, "clients", None):
            return
        for client in self.clients:
            if client.away:
                self.come_back(self.clients.index(client))
        for _ in range(60):  # longer than any time-out
            self.world.pass_time(1_000)
            for client in self.clients:
                client.do_as_told()
                client.heartbeat(self.world)
                client.do_as_told()
        assert self.world.group().state == "Stable"
        assert self.world.group().members.keys() == {client.member_id for client in self.clients}
        self.no_partition_has_two_owners()
        owned = {
            (topic, partition)
            for client in self.clients
            for topic, partitions in client.owned.items()
            for partition in partitions
        }
        assert owned == {
            (topic, partition)
            for topic in frozenset[str]().union(*(client.topics for client in self.clients))
            for partition in range(self.world.topics.partition_count(topic) or 0)
        }


Simulation.TestCase.settings = settings(
    max_examples=300,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestSimulation = Simulation.TestCase
