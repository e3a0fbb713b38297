"""Streams applications that start, die, lose answers and grow, on a broker that restarts: no task ever runs
as active in two members, or twice in one process; in the end all tasks run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from consumer_support import FakeTopics
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from streams_support import World, sub

from kbroker.coordinators.groups.errors import FencedMemberEpoch, UnknownMemberId
from kbroker.coordinators.groups.streams.requests import HeartbeatResult
from kbroker.coordinators.groups.streams.settings import StreamsGroupSettings
from kbroker.coordinators.groups.streams.tasks import TaskId, Tasks

SUBTOPOLOGIES = (sub("0", "t"), sub("1", "u", changelogs=("store",)))


class Client:
    """A thread of an application. It runs what it was told to; before it has done so, it does not say what
    it runs, else it does when that has changed, and after a failure.
    """

    def __init__(self, member_id: str, process: str) -> None:
        self.member_id = member_id
        self.process = process
        self.epoch = 0
        self.runs = Tasks()
        self.told: Tasks | None = None
        self.reports = True
        self.full = False
        """Whether an answer was lost."""

    def take(self, result: HeartbeatResult) -> None:
        self.epoch = result.member_epoch
        if result.tasks is not None:
            self.told = result.tasks

    def do_as_told(self) -> None:
        """What is no longer wanted ends; what is new begins, once the member has reported."""
        if self.told is not None:
            self.runs, self.told, self.reports = self.told, None, True

    def drop_all(self) -> None:
        self.epoch, self.runs, self.told, self.reports, self.full = 0, Tasks(), None, True, False


class StreamsGroupSimulation(RuleBasedStateMachine):
    @initialize(standbys=st.integers(0, 2), delay_ms=st.sampled_from([0, 3_000, None]))
    def begin(self, standbys: int, delay_ms: int | None) -> None:
        chosen = StreamsGroupSettings(initial_rebalance_delay_ms=delay_ms, num_standby_replicas=standbys)
        self.topics = FakeTopics(t=4, u=2, store=2)
        self.world = World(self.topics, chosen)
        self.clients: dict[str, Client] = {}
        self.started = 0

    # what happens

    @rule(process=st.sampled_from(["p", "q", "r"]))
    def a_thread_starts(self, process: str) -> None:
        if len(self.clients) < 5:
            self.started += 1
            client = Client(f"m{self.started}", process)
            self.clients[client.member_id] = client
            self._beat(client)

    @rule(data=st.data(), answered=st.booleans())
    def a_heartbeat(self, data: st.DataObject, answered: bool) -> None:
        if self.clients:
            self._beat(self.clients[data.draw(st.sampled_from(sorted(self.clients)))], answered=answered)

    @rule(data=st.data())
    def a_thread_does_as_told(self, data: st.DataObject) -> None:
        if self.clients:
            self.clients[data.draw(st.sampled_from(sorted(self.clients)))].do_as_told()

    @rule(data=st.data())
    def a_thread_leaves(self, data: st.DataObject) -> None:
        if self.clients:
            client = self.clients.pop(data.draw(st.sampled_from(sorted(self.clients))))
            if client.member_id in self.world.group().members:
                self.world.heartbeat(client.member_id, -1)

    @rule(data=st.data())
    def a_thread_dies(self, data: st.DataObject) -> None:
        if self.clients:
            del self.clients[data.draw(st.sampled_from(sorted(self.clients)))]

    @rule(milliseconds=st.sampled_from([10, 100, 1_000, 20_000]))
    def time_passes(self, milliseconds: int) -> None:
        """Those that live are never silent for as long as a session."""
        if milliseconds == 20_000:
            for client in self.clients.values():
                self._beat(client)
        self.world.pass_time(milliseconds)

    @precondition(lambda self: self.topics.partition_count("t") < 7)
    @rule()
    def a_source_grows(self) -> None:
        self.world.grow_topic("t", (self.topics.partition_count("t") or 0) + 1)

    @rule(standbys=st.integers(0, 2))
    def other_standbys_are_wanted(self, standbys: int) -> None:
        self.world.settings = replace(self.world.settings, num_standby_replicas=standbys)

    @rule()
    def the_broker_restarts(self) -> None:
        self.world = self.world.restarted()

    # what holds

    @invariant()
    def no_task_is_active_twice(self) -> None:
        active = Counter(task for client in self.clients.values() for task in client.runs.active)
        assert set(active.values()) <= {1}, active

    @invariant()
    def no_process_has_a_task_twice(self) -> None:
        places = Counter(
            (client.process, task) for client in self.clients.values() for task in client.runs.all()
        )
        assert set(places.values()) <= {1}, places

    def teardown(self) -> None:
        if not self.clients:
            return
        for _ in range(60):
            for client in self.clients.values():
                self._beat(client)
                client.do_as_told()
            self.no_task_is_active_twice()
            self.no_process_has_a_task_twice()
            self.world.pass_time(1_000)
        assert self.world.group().state == "Stable"
        widths = {"0": self.topics.partition_count("t") or 0, "1": 2}
        everything = {TaskId(name, number) for name, width in widths.items() for number in range(width)}
        assert {task for client in self.clients.values() for task in client.runs.active} == everything

    # how a thread speaks

    def _beat(self, client: Client, *, answered: bool = True) -> None:
        try:
            if client.epoch == 0:
                result = self.world.join(
                    client.member_id, *SUBTOPOLOGIES, process_id=client.process, rebalance_timeout_ms=10**9
                )
            else:
                owned = client.runs if client.reports and client.told is None else None
                after_failure = {"rebalance_timeout_ms": 10**9} if client.full else {}
                result = self.world.heartbeat(client.member_id, client.epoch, owned, **after_failure)
        except (FencedMemberEpoch, UnknownMemberId):
            client.drop_all()
            return
        if answered:
            client.reports = client.reports and client.told is not None
            client.full = client.full and client.told is not None
            client.take(result)
        else:
            client.reports = client.full = True  # it does not know what the broker has heard


TestStreamsGroupSimulation = StreamsGroupSimulation.TestCase
TestStreamsGroupSimulation.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
