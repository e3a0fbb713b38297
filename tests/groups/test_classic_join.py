"""JoinGroup: who gets in, under which id, and when a generation begins."""

from __future__ import annotations

import pytest
from classic_support import GROUP, RANGE, Simulation, failure

from kbroker.coordinators.groups.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)

ROUND_ROBIN = (("roundrobin", b"metadata"),)
BOTH = (("roundrobin", b"1"), ("range", b"2"))


@pytest.fixture
def simulation() -> Simulation:
    return Simulation()


def test_a_new_dynamic_member_is_told_its_id_first(simulation):
    error = failure(simulation.join(client_id="app"))
    assert isinstance(error, MemberIdRequired)
    assert error.member_id == "app-id1"
    assert simulation.group.state == "Empty"


def test_an_old_client_joins_without_an_id(simulation):
    join = simulation.join(member_id_required=False)
    simulation.advance(100)
    assert join.result().member_id == "client-id1"


def test_a_static_member_needs_no_second_step(simulation):
    join = simulation.join(group_instance_id="i")
    simulation.advance(100)
    assert join.result().member_id == "i-id1"


def test_an_unknown_member_id_does_not_create_a_group(simulation):
    assert isinstance(failure(simulation.join("nobody")), UnknownMemberId)
    assert GROUP not in simulation.coordinator.groups


def test_an_unknown_member_id_is_refused_by_a_group(simulation):
    simulation.stable_group()
    assert isinstance(failure(simulation.join("nobody")), UnknownMemberId)


def test_an_empty_group_id_is_invalid(simulation):
    assert isinstance(failure(simulation.join(group_id="")), InvalidGroupId)


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001, 0, -1])
def test_a_session_timeout_out_of_bounds_is_invalid(simulation, timeout_ms):
    assert isinstance(failure(simulation.join(session_timeout_ms=timeout_ms)), InvalidSessionTimeout)


@pytest.mark.parametrize("timeout_ms", [6_000, 1_800_000])
def test_a_session_timeout_at_the_bounds_is_fine(simulation, timeout_ms):
    assert isinstance(failure(simulation.join(session_timeout_ms=timeout_ms)), MemberIdRequired)


@pytest.mark.parametrize("overrides", [{"protocol_type": ""}, {"protocols": ()}])
def test_a_first_member_needs_a_protocol(simulation, overrides):
    assert isinstance(failure(simulation.join(**overrides)), InconsistentGroupProtocol)


def test_another_protocol_type_is_inconsistent(simulation):
    simulation.stable_group()
    error = failure(simulation.join(protocol_type="connect"))
    assert isinstance(error, InconsistentGroupProtocol)


def test_no_protocol_in_common_is_inconsistent(simulation):
    simulation.stable_group()
    assert isinstance(failure(simulation.join(protocols=ROUND_ROBIN)), InconsistentGroupProtocol)


def test_a_pending_member_cannot_come_back_as_a_static_one(simulation):
    pending_id = failure(simulation.join()).member_id
    assert isinstance(failure(simulation.join(pending_id, group_instance_id="i")), UnknownMemberId)


def test_any_protocol_type_makes_a_group(simulation):
    simulation.stable_group(protocol_type="connect", protocols=(("sessioned", b"x"),))
    assert simulation.group.protocol_type == "connect"
    assert simulation.group.protocol_name == "sessioned"


def test_the_protocol_that_most_members_prefer_is_chosen(simulation):
    joins = [
        simulation.join_with_id(protocols=protocols)[1]
        for protocols in (BOTH, BOTH, (("range", b"2"), ("roundrobin", b"1")))
    ]
    simulation.advance(3_000)
    assert {join.result().protocol_name for join in joins} == {"roundrobin"}


def test_a_protocol_that_one_member_lacks_is_not_chosen(simulation):
    joins = [simulation.join_with_id(protocols=protocols)[1] for protocols in (BOTH, BOTH, RANGE)]
    simulation.advance(3_000)
    assert {join.result().protocol_name for join in joins} == {"range"}


def test_the_leader_learns_all_members_and_the_others_none(simulation):
    first, first_join = simulation.join_with_id(protocols=(("range", b"one"),))
    second, second_join = simulation.join_with_id(protocols=(("range", b"two"),), client_id="other")
    simulation.advance(200)
    leader, follower = first_join.result(), second_join.result()
    assert leader.leader == follower.leader == first
    assert leader.generation_id == follower.generation_id == 1
    assert [(m.member_id, m.metadata) for m in leader.members] == [(first, b"one"), (second, b"two")]
    assert follower.members == []


# the initial delay


def test_by_default_a_generation_begins_when_nobody_has_come_for_a_moment(simulation):
    _, first = simulation.join_with_id()
    simulation.advance(90)
    _, second = simulation.join_with_id()
    simulation.advance(99)
    assert not first.done
    simulation.advance(1)
    assert first.result().generation_id == second.result().generation_id == 1


def test_members_that_keep_coming_delay_the_first_generation_three_seconds_at_most(simulation):
    _, first = simulation.join_with_id()
    for _ in range(40):
        simulation.advance(75)
        simulation.join_with_id()
    assert first.done
    assert len(first.result().members) == 40


def test_a_configured_initial_delay_is_prolonged_as_kafka_does_it():
    simulation = Simulation(group_initial_rebalance_delay_ms=3_000)
    _, first = simulation.join_with_id()
    simulation.advance(2_999)
    assert not first.done
    simulation.join_with_id()
    simulation.advance(1)
    assert not first.done, "a member came: another delay"
    simulation.advance(2_999)
    assert not first.done
    simulation.advance(1)
    assert len(first.result().members) == 2


def test_a_configured_initial_delay_ends_with_the_rebalance_timeout():
    simulation = Simulation(group_initial_rebalance_delay_ms=3_000)
    _, first = simulation.join_with_id(rebalance_timeout_ms=7_000)
    for _ in range(6):
        simulation.advance(1_000)
        simulation.join_with_id(rebalance_timeout_ms=7_000)
    assert not first.done
    simulation.advance(1_000)
    assert first.done


def test_without_an_initial_delay_the_first_member_starts_at_once():
    simulation = Simulation(group_initial_rebalance_delay_ms=0)
    _, join = simulation.join_with_id()
    simulation.advance(0)
    assert join.result().generation_id == 1


# joining again


def test_a_new_member_starts_a_rebalance_that_waits_for_all(simulation):
    leader, follower = simulation.stable_group()
    _, new = simulation.join_with_id()
    assert simulation.group.state == "PreparingRebalance"
    simulation.advance(5_000)
    rejoined = [simulation.join(leader), simulation.join(follower)]
    assert [join.result().generation_id for join in (*rejoined, new)] == [2, 2, 2]


def test_a_leader_that_joins_again_starts_a_rebalance(simulation):
    leader, follower = simulation.stable_group()
    join = simulation.join(leader)
    assert not join.done
    assert simulation.group.state == "PreparingRebalance"
    simulation.join(follower)
    assert join.result().generation_id == 2


def test_a_follower_that_joins_again_unchanged_learns_the_current_generation(simulation):
    leader, follower = simulation.stable_group()
    result = simulation.join(follower).result()
    assert (result.generation_id, result.leader, result.members) == (1, leader, [])
    assert simulation.group.state == "Stable"


def test_a_follower_that_joins_with_a_change_starts_a_rebalance(simulation):
    leader, follower = simulation.stable_group()
    join = simulation.join(follower, protocols=(("range", b"other"),))
    assert not join.done
    result = simulation.join(leader).result()
    assert {m.metadata for m in result.members} == {b"metadata", b"other"}


def test_a_leader_that_missed_the_answer_to_its_join_gets_it_again(simulation):
    member, join = simulation.join_with_id()
    simulation.advance(100)
    again = simulation.join(member).result()
    assert again == join.result()
    assert len(again.members) == 1


def test_a_member_that_changes_before_the_sync_starts_another_rebalance(simulation):
    first, _ = simulation.join_with_id()
    second, _ = simulation.join_with_id()
    simulation.advance(200)
    sync = simulation.sync(second, 1)
    simulation.join(first, protocols=(("range", b"other"),))
    assert isinstance(failure(sync), RebalanceInProgress)
    assert simulation.join(second).result().generation_id == 2


def test_a_second_join_of_a_member_takes_the_place_of_the_first(simulation):
    member, first = simulation.join_with_id()
    second = simulation.join(member)
    assert isinstance(failure(first), RebalanceInProgress)
    simulation.advance(100)
    assert second.result().generation_id == 1


def test_a_member_that_does_not_join_in_time_is_out(simulation):
    leader, follower = simulation.stable_group(rebalance_timeout_ms=20_000)
    join = simulation.join(follower, protocols=(("range", b"other"),), rebalance_timeout_ms=20_000)
    for _ in range(4):
        simulation.advance(4_999)
        with pytest.raises(RebalanceInProgress):
            simulation.heartbeat(leader, 1)
    simulation.advance(4)
    result = join.result()
    assert result.leader == follower
    assert [m.member_id for m in result.members] == [follower]
    assert isinstance(failure(simulation.join(leader)), UnknownMemberId)


def test_an_id_that_nobody_comes_back_with_expires_with_its_session(simulation):
    error = failure(simulation.join())
    simulation.advance(10_000)
    assert isinstance(failure(simulation.join(error.member_id)), UnknownMemberId)


def test_a_rebalance_waits_for_members_that_have_their_id_but_have_not_joined(simulation):
    leader, follower = simulation.stable_group()
    pending_id = failure(simulation.join()).member_id
    joins = [simulation.join(leader), simulation.join(follower)]
    assert not any(join.done for join in joins)
    simulation.join(pending_id)
    assert all(join.done for join in joins)


def test_a_new_member_whose_join_waits_too_long_is_dropped(simulation):
    leader, follower = simulation.stable_group(rebalance_timeout_ms=600_000)
    _, new = simulation.join_with_id()
    for _ in range(60):
        simulation.advance(5_000)
        for member in (leader, follower):
            with pytest.raises(RebalanceInProgress):
                simulation.heartbeat(member, 1)
    error = failure(new)
    assert isinstance(error, UnknownMemberId)
    assert error.member_id == ""


# group.max.size


def test_a_full_group_takes_no_new_member():
    simulation = Simulation(group_max_size=2)
    simulation.stable_group()
    error = failure(simulation.join())
    assert isinstance(error, GroupMaxSizeReached)
    assert error.member_id == ""


def test_during_a_rebalance_the_first_to_join_get_the_places():
    simulation = Simulation(group_max_size=2)
    leader, follower = simulation.stable_group()
    simulation.join(leader)
    assert simulation.group.state == "PreparingRebalance"
    _, new = simulation.join_with_id()
    assert isinstance(failure(simulation.join(follower)), GroupMaxSizeReached)
    assert new.result().generation_id == 2, "the one turned away is not waited for"


# static members


def test_a_static_member_that_restarts_keeps_its_place_without_a_rebalance(simulation):
    (leader_join, follower_join) = [simulation.join(group_instance_id=name) for name in "ab"]
    simulation.advance(200)
    leader, follower = leader_join.result(), follower_join.result()
    simulation.settle([leader, follower])
    back = simulation.join(group_instance_id="b").result()
    assert back.member_id not in ("", follower.member_id)
    assert (back.generation_id, back.leader, back.skip_assignment) == (1, leader.member_id, False)
    assert simulation.group.state == "Stable"
    assignment = simulation.sync(back.member_id, 1, group_instance_id="b").result().assignment
    assert assignment == follower.member_id.encode()
    with pytest.raises(FencedInstanceId):
        simulation.heartbeat(follower.member_id, 1, "b")
    with pytest.raises(UnknownMemberId):
        simulation.heartbeat(follower.member_id, 1)


def test_a_static_leader_that_restarts_is_told_to_skip_the_assignment(simulation):
    join = simulation.join(group_instance_id="a")
    simulation.advance(100)
    simulation.settle([join.result()])
    back = simulation.join(group_instance_id="a").result()
    assert back.leader == back.member_id
    assert back.skip_assignment
    assert [m.member_id for m in back.members] == [back.member_id]


def test_an_older_static_leader_that_restarts_does_not_think_it_leads(simulation):
    join = simulation.join(group_instance_id="a")
    simulation.advance(100)
    simulation.settle([join.result()])
    back = simulation.join(group_instance_id="a", can_skip_assignment=False).result()
    assert back.leader == join.result().member_id != back.member_id
    assert not back.skip_assignment
    assert back.members == []


def test_a_static_member_that_comes_back_with_another_protocol_starts_a_rebalance(simulation):
    join = simulation.join(group_instance_id="a", protocols=BOTH)
    simulation.advance(100)
    simulation.settle([join.result()])
    back = simulation.join(group_instance_id="a", protocols=(("range", b"2"), ("roundrobin", b"1")))
    assert (back.result().generation_id, back.result().protocol_name) == (2, "range")


def test_a_static_member_that_comes_back_before_the_sync_starts_a_rebalance(simulation):
    joins = [simulation.join(group_instance_id=name) for name in "ab"]
    simulation.advance(200)
    leader = joins[0].result().member_id
    back = simulation.join(group_instance_id="b")
    assert not back.done
    assert simulation.join(leader, group_instance_id="a").result().generation_id == 2
    assert back.result().generation_id == 2


def test_a_parked_join_of_the_replaced_static_member_is_fenced(simulation):
    first = simulation.join(group_instance_id="a")
    second = simulation.join(group_instance_id="a")
    error = failure(first)
    assert isinstance(error, FencedInstanceId)
    assert error.member_id == "a-id1"
    simulation.advance(100)
    assert second.result().member_id == "a-id2"


def test_a_member_id_with_the_wrong_instance_id_is_fenced(simulation):
    simulation.join(group_instance_id="a")
    other = simulation.join(group_instance_id="b")
    simulation.advance(200)
    simulation.join(group_instance_id="a")
    error = failure(simulation.join(other.result().member_id, group_instance_id="a"))
    assert isinstance(error, FencedInstanceId)


def test_an_unknown_instance_id_is_an_unknown_member(simulation):
    (member,) = simulation.stable_group(1)
    assert isinstance(failure(simulation.join(member, group_instance_id="x")), UnknownMemberId)


def test_static_members_that_do_not_rejoin_stay_in_the_group(simulation):
    joins = [simulation.join(group_instance_id=name, rebalance_timeout_ms=8_000) for name in "ab"]
    simulation.advance(200)
    simulation.settle([join.result() for join in joins])
    leader = joins[0].result().member_id
    rejoined = simulation.join(leader, group_instance_id="a", rebalance_timeout_ms=8_000)
    simulation.advance(8_000)
    assert len(rejoined.result().members) == 2


def test_when_only_static_members_are_left_and_none_rejoins_their_sessions_decide(simulation):
    static = simulation.join(group_instance_id="a", rebalance_timeout_ms=8_000, session_timeout_ms=60_000)
    dynamic, join = simulation.join_with_id(rebalance_timeout_ms=8_000)
    simulation.advance(200)
    simulation.settle([static.result(), join.result()])
    simulation.leave(dynamic)
    simulation.advance(59_000)
    assert simulation.group.state == "PreparingRebalance"
    simulation.advance(1_000)
    assert simulation.group.state == "Empty"


def test_a_protocol_named_twice_counts_once(simulation):
    twice = simulation.join(member_id_required=False, protocols=(("range", b"1"), ("range", b"2")))
    simulation.advance(100)
    assert twice.result().protocol_name == "range"
