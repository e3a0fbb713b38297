"""Whole groups in simulation: hundreds of members, all that can happen to them, and a day of heartbeats."""

from __future__ import annotations

from random import Random

from classic_members_simulation import Crowd, Member, live_through
from classic_support import Simulation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule


class FewMembers(RuleBasedStateMachine):
    """A few members, step by step, so that a failure shrinks to a short story."""

    @initialize(
        session_timeout_ms=st.sampled_from((8_000, 30_000)),
        rebalance_timeout_ms=st.sampled_from((5_000, 20_000)),
    )
    def begin(self, session_timeout_ms: int, rebalance_timeout_ms: int) -> None:
        self.crowd = Crowd(
            4, session_timeout_ms=session_timeout_ms, rebalance_timeout_ms=rebalance_timeout_ms
        )

    def _member(self, number: int) -> Member:
        return self.crowd.members[number % len(self.crowd.members)]

    @rule(static=st.booleans())
    def somebody_comes(self, static: bool) -> None:
        if len(self.crowd.members) < 5:
            self.crowd.step(self.crowd.add(static=static))

    @precondition(lambda self: self.crowd.members)
    @rule(steps=st.lists(st.integers(0, 4), max_size=12))
    def members_go_on(self, steps: list[int]) -> None:
        for number in steps:
            self.crowd.step(self._member(number))

    @rule(milliseconds=st.sampled_from((1, 50, 100, 1_000, 3_000, 9_000, 21_000)))
    def time_passes(self, milliseconds: int) -> None:
        self.crowd.advance(milliseconds)

    @precondition(lambda self: self.crowd.members)
    @rule(number=st.integers(0, 4))
    def somebody_leaves(self, number: int) -> None:
        self.crowd.leave(self._member(number))

    @precondition(lambda self: self.crowd.members)
    @rule(number=st.integers(0, 4))
    def somebody_reboots(self, number: int) -> None:
        self.crowd.reboot(self._member(number))

    @precondition(lambda self: self.crowd.members)
    @rule(number=st.integers(0, 4))
    def somebody_is_started_twice(self, number: int) -> None:
        self.crowd.add_twin(self._member(number))

    @precondition(lambda self: self.crowd.members)
    @rule(number=st.integers(0, 4), milliseconds=st.sampled_from((1_000, 15_000, 60_000)))
    def somebody_pauses(self, number: int, milliseconds: int) -> None:
        self.crowd.pause(self._member(number), milliseconds)

    @precondition(lambda self: self.crowd.members)
    @rule(number=st.integers(0, 4))
    def an_answer_is_lost(self, number: int) -> None:
        self.crowd.lose_answer(self._member(number))

    @precondition(lambda self: self.crowd.members)
    @rule(number=st.integers(0, 4))
    def a_request_comes_twice(self, number: int) -> None:
        self.crowd.repeat(self._member(number))

    @rule()
    def the_coordinator_restarts(self) -> None:
        self.crowd.restart_coordinator()

    @invariant()
    def offsets_do_not_go_back(self) -> None:
        self.crowd.check_offsets()

    def teardown(self) -> None:
        self.crowd.calm_down()


TestFewMembers = FewMembers.TestCase
TestFewMembers.settings = settings(
    max_examples=100, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)


@given(seed=st.integers(0, 2**32), static=st.booleans())
@settings(max_examples=4, deadline=None)
def test_hundreds_of_members_settle_whatever_happens_to_them(seed: int, static: bool) -> None:
    live_through(Random(seed), members=200, partitions=300, rounds=100, static=static).calm_down()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_a_dozen_members_keep_the_promises_through_many_generations(seed: int) -> None:
    live_through(Random(seed), members=12, partitions=12, rounds=500, static=True).calm_down()


def test_a_thousand_members_keep_their_group_through_a_day_of_heartbeats() -> None:
    simulation = Simulation()
    members = simulation.stable_group(1_000, session_timeout_ms=1_800_000)
    for _ in range(144):
        simulation.advance(600_000)
        for member in members:
            simulation.heartbeat(member, 1)
    assert simulation.group.state == "Stable"
    assert len(simulation.group.members) == 1_000
