"""SyncGroup, Heartbeat, LeaveGroup, time-outs, and what the group tells about itself."""

from __future__ import annotations

import pytest
from classic_support import GROUP, RANGE, Simulation, SlowStore, failure, subscription

from kbroker.coordinators.groups.classic.protocol import LeavingMember
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    NonEmptyGroup,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)


@pytest.fixture
def simulation() -> Simulation:
    return Simulation()


def joined(simulation: Simulation, count: int = 2, **overrides) -> list[str]:
    """Members of a generation without an assignment; the leader's id first."""
    joins = [simulation.join_with_id(**overrides) for _ in range(count)]
    simulation.advance(count * 100)
    assert simulation.group.state == "CompletingRebalance"
    return [member_id for member_id, _ in joins]


# SyncGroup


def test_followers_wait_for_the_assignment_of_the_leader(simulation):
    leader, follower = joined(simulation)
    waiting = simulation.sync(follower, 1)
    assert not waiting.done
    own = simulation.sync(leader, 1, {leader: b"l", follower: b"f"})
    assert (own.result().assignment, waiting.result().assignment) == (b"l", b"f")
    assert (waiting.result().protocol_type, waiting.result().protocol_name) == ("consumer", "range")


def test_a_follower_that_syncs_late_gets_its_assignment_at_once(simulation):
    leader, follower = joined(simulation)
    simulation.sync(leader, 1, {follower: b"f"})
    assert simulation.sync(follower, 1).result().assignment == b"f"


def test_a_member_that_the_leader_forgot_gets_an_empty_assignment(simulation):
    leader, follower = joined(simulation)
    simulation.sync(leader, 1, {leader: b"l"})
    assert simulation.sync(follower, 1).result().assignment == b""


def test_sync_of_a_missing_group_is_an_unknown_member(simulation):
    assert isinstance(failure(simulation.sync("x", 1)), UnknownMemberId)


def test_sync_of_an_unknown_member(simulation):
    joined(simulation)
    assert isinstance(failure(simulation.sync("x", 1)), UnknownMemberId)


def test_sync_of_another_generation_is_illegal(simulation):
    leader, _ = joined(simulation)
    assert isinstance(failure(simulation.sync(leader, 2)), IllegalGeneration)


@pytest.mark.parametrize("overrides", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_sync_with_another_protocol_is_inconsistent(simulation, overrides):
    leader, _ = joined(simulation)
    assert isinstance(failure(simulation.sync(leader, 1, **overrides)), InconsistentGroupProtocol)


def test_sync_during_a_rebalance_says_so(simulation):
    leader, follower = simulation.stable_group()
    simulation.join(leader)
    assert isinstance(failure(simulation.sync(follower, 1)), RebalanceInProgress)


def test_sync_of_an_empty_group_id_is_invalid(simulation):
    assert isinstance(failure(simulation.sync("x", 1, group_id="")), InvalidGroupId)


def test_members_that_do_not_sync_within_the_rebalance_timeout_are_out(simulation):
    leader, follower = joined(simulation, rebalance_timeout_ms=9_000)
    simulation.sync(leader, 1, {})
    simulation.advance(5_000)
    simulation.heartbeat(follower, 1)
    simulation.heartbeat(leader, 1)
    simulation.advance(3_900)
    assert simulation.group.state == "PreparingRebalance"
    assert [m.member_id for m in simulation.group.members] == [leader]


def test_a_leader_that_does_not_sync_is_out_and_its_followers_join_again(simulation):
    leader, follower = joined(simulation, rebalance_timeout_ms=9_000)
    waiting = simulation.sync(follower, 1)
    for _ in range(3):
        simulation.advance(3_000)
        if leader in simulation.group.members:
            simulation.heartbeat(leader, 1)
    assert isinstance(failure(waiting), RebalanceInProgress)
    assert simulation.join(follower).result().leader == follower


def test_nobody_gets_an_assignment_before_it_is_stored():
    store = SlowStore()
    simulation = Simulation(store)
    leader, follower = joined(simulation)
    store.finish()
    syncs = [simulation.sync(leader, 1, {leader: b"l"}), simulation.sync(follower, 1)]
    assert simulation.group.state == "CompletingRebalance"
    assert not any(sync.done for sync in syncs)
    store.finish()
    assert simulation.group.state == "Stable"
    assert [sync.result().assignment for sync in syncs] == [b"l", b""]


def test_an_assignment_that_cannot_be_stored_starts_another_rebalance():
    store = SlowStore()
    simulation = Simulation(store)
    (leader,) = joined(simulation, 1)
    store.finish()
    sync = simulation.sync(leader, 1, {leader: b"l"})
    store.finish(OSError("disk full"))
    assert isinstance(failure(sync), CoordinatorNotAvailable)
    assert simulation.group.state == "PreparingRebalance"
    assert simulation.join(leader).result().generation_id == 2


def test_an_assignment_is_dropped_when_a_rebalance_begins_while_it_is_stored():
    store = SlowStore()
    simulation = Simulation(store)
    leader, follower = joined(simulation)
    store.finish()
    sync = simulation.sync(leader, 1, {leader: b"l"})
    simulation.join(follower, protocols=(("range", b"other"),))
    assert isinstance(failure(sync), RebalanceInProgress)
    store.finish()
    assert simulation.group.state == "PreparingRebalance"


def test_an_assignment_of_an_older_generation_is_dropped():
    store = SlowStore()
    simulation = Simulation(store)
    (member,) = joined(simulation, 1)
    store.finish()
    simulation.sync(member, 1, {member: b"old"})
    assert simulation.join(member, protocols=(("range", b"other"),)).result().generation_id == 2
    store.finish()
    assert simulation.group.state == "CompletingRebalance"
    assert simulation.group.describe().members[0].assignment == b""


def test_a_static_replacement_that_cannot_be_stored_is_taken_back():
    store = SlowStore()
    simulation = Simulation(store)
    join = simulation.join(group_instance_id="a")
    simulation.advance(100)
    old = join.result().member_id
    simulation.sync(old, 1, {old: b"x"})
    store.finish()
    back = simulation.join(group_instance_id="a")
    assert not back.done
    store.finish(OSError("disk full"))
    assert isinstance(failure(back), CoordinatorNotAvailable)
    simulation.heartbeat(old, 1, "a")


def test_a_static_member_that_left_before_its_replacement_failed_stays_away():
    store = SlowStore()
    simulation = Simulation(store)
    join = simulation.join(group_instance_id="a")
    simulation.advance(100)
    simulation.sync(join.result().member_id, 1)
    store.finish()
    back = simulation.join(group_instance_id="a")
    simulation.leave(LeavingMember("", "a"))
    assert isinstance(failure(back), UnknownMemberId)
    store.finish(OSError("disk full"))
    assert simulation.group.state == "Empty"
    assert len(simulation.group.members) == 0


# Heartbeat and sessions


def test_heartbeats_keep_a_member(simulation):
    leader, follower = simulation.stable_group()
    for _ in range(20):
        simulation.advance(9_999)
        simulation.heartbeat(leader, 1)
        simulation.heartbeat(follower, 1)
    assert simulation.group.state == "Stable"


def test_a_member_without_heartbeats_is_out_after_its_session_timeout(simulation):
    leader, follower = simulation.stable_group()
    simulation.advance(6_000)
    simulation.heartbeat(leader, 1)
    simulation.advance(4_000)
    with pytest.raises(RebalanceInProgress):
        simulation.heartbeat(leader, 1)
    with pytest.raises(UnknownMemberId):
        simulation.heartbeat(follower, 1)


def test_a_group_whose_last_member_expires_is_empty(simulation):
    simulation.stable_group()
    simulation.advance(80_000)
    assert simulation.group.state == "Empty"
    assert simulation.group.generation_id == 2


def test_a_member_waiting_for_an_answer_does_not_expire(simulation):
    leader, follower = simulation.stable_group(rebalance_timeout_ms=50_000)
    join = simulation.join(leader, rebalance_timeout_ms=50_000)
    for _ in range(5):
        simulation.advance(9_000)
        with pytest.raises(RebalanceInProgress):
            simulation.heartbeat(follower, 1)
    assert not join.done
    assert leader in simulation.group.members


def test_heartbeat_of_another_generation_is_illegal(simulation):
    leader, _ = simulation.stable_group()
    with pytest.raises(IllegalGeneration):
        simulation.heartbeat(leader, 7)


def test_heartbeat_of_a_missing_group_is_an_unknown_member(simulation):
    with pytest.raises(UnknownMemberId):
        simulation.heartbeat("x", 1)


def test_heartbeat_of_a_generation_without_assignment_is_fine(simulation):
    leader, _ = joined(simulation)
    simulation.heartbeat(leader, 1)


def test_heartbeat_of_a_pending_member_is_unknown(simulation):
    simulation.stable_group()
    pending_id = failure(simulation.join()).member_id
    with pytest.raises(UnknownMemberId):
        simulation.heartbeat(pending_id, 1)


# LeaveGroup


def test_a_leaving_member_starts_a_rebalance(simulation):
    leader, follower = simulation.stable_group()
    assert [result.error for result in simulation.leave(leader)] == [None]
    assert simulation.join(follower).result().leader == follower


def test_the_last_member_leaves_an_empty_group(simulation):
    members = simulation.stable_group()
    simulation.leave(*members)
    assert simulation.group.state == "Empty"
    assert simulation.group.generation_id == 2
    assert simulation.group.protocol_type == "consumer"


def test_members_leave_together_each_with_its_own_result(simulation):
    joins = {name: simulation.join(group_instance_id=name) for name in "abc"}
    simulation.advance(300)
    ids = {name: join.result().member_id for name, join in joins.items()}
    results = simulation.leave(
        LeavingMember("", "a", "the administrator said so"),
        LeavingMember(ids["b"], "b"),
        LeavingMember("wrong", "c"),
        LeavingMember("", "nobody"),
        LeavingMember("nobody"),
        LeavingMember("", None),
    )
    errors = [type(result.error) for result in results]
    none = type(None)
    assert errors == [none, none, FencedInstanceId, UnknownMemberId, UnknownMemberId, UnknownMemberId]
    assert [(r.member_id, r.group_instance_id) for r in results[:2]] == [("", "a"), (ids["b"], "b")]
    assert [m.member_id for m in simulation.group.members] == [ids["c"]]


def test_a_member_that_leaves_while_its_join_waits_is_answered(simulation):
    leader, follower = simulation.stable_group()
    join = simulation.join(leader)
    simulation.leave(leader)
    assert isinstance(failure(join), UnknownMemberId)
    assert simulation.join(follower).result().generation_id == 2


def test_a_pending_member_may_leave(simulation):
    pending_id = failure(simulation.join()).member_id
    assert simulation.leave(pending_id)[0].error is None
    assert isinstance(failure(simulation.join(pending_id)), UnknownMemberId)


def test_leaving_a_missing_group_is_an_unknown_member_each(simulation):
    assert [type(result.error) for result in simulation.leave("x", "y")] == [UnknownMemberId] * 2


def test_leaving_without_a_group_id_is_invalid(simulation):
    with pytest.raises(InvalidGroupId):
        simulation.coordinator.leave_group("", [LeavingMember("x")], simulation.now_ms)


# what the group tells


def test_a_stable_group_shows_metadata_and_assignments(simulation):
    (member,) = simulation.stable_group(1)
    description = simulation.coordinator.describe_classic(GROUP)
    assert description[:4] == (GROUP, "Stable", "consumer", "range")
    assert description.members == [(member, None, "client", "/127.0.0.1", b"metadata", member.encode())]


def test_a_rebalancing_group_shows_members_without_metadata(simulation):
    joined(simulation, 1)
    description = simulation.coordinator.describe_classic(GROUP)
    assert description[:4] == (GROUP, "CompletingRebalance", "consumer", "")
    assert description.members[0].metadata == b""


def test_a_missing_group_cannot_be_described(simulation):
    with pytest.raises(GroupIdNotFound, match=r"Group x not found\."):
        simulation.coordinator.describe_classic("x")


def test_groups_are_listed_by_state_and_type(simulation):
    simulation.stable_group()
    failure(simulation.join(group_id="other"))
    names = [group.group_id for group in simulation.coordinator.list_groups()]
    assert sorted(names) == [GROUP, "other"]
    assert simulation.coordinator.list_groups(states=[" stable"]) == [
        (GROUP, "consumer", "Stable", "classic")
    ]
    assert simulation.coordinator.list_groups(states=["EMPTY"]) == [("other", "", "Empty", "classic")]
    assert len(simulation.coordinator.list_groups(types=["Classic"])) == 2
    assert simulation.coordinator.list_groups(types=["consumer"]) == []
    assert simulation.coordinator.list_groups(types=["nonsense"]) == []


def test_a_group_with_members_cannot_be_deleted(simulation):
    simulation.stable_group()
    assert isinstance(failure(simulation.coordinator.delete_group(GROUP, 0)), NonEmptyGroup)


def test_a_missing_group_cannot_be_deleted(simulation):
    assert isinstance(failure(simulation.coordinator.delete_group("x", 0)), GroupIdNotFound)


def test_an_empty_group_is_deleted(simulation):
    simulation.leave(*simulation.stable_group())
    assert simulation.coordinator.delete_group(GROUP, simulation.now_ms).result() is None
    assert simulation.coordinator.list_groups() == []
    assert simulation.store.load().groups == []


def test_a_group_that_somebody_joins_while_its_deletion_is_stored_stays():
    store = SlowStore()
    simulation = Simulation(store)
    simulation.leave(*joined(simulation))
    store.finish()
    deletion = simulation.coordinator.delete_group(GROUP, simulation.now_ms)
    member, join = simulation.join_with_id()
    store.finish()
    assert deletion.result() is None
    simulation.advance(100)
    assert join.result().member_id == member


def test_closing_tells_whoever_waits(simulation):
    _, join = simulation.join_with_id()
    simulation.coordinator.close()
    assert isinstance(failure(join), NotCoordinator)


def test_no_timer_is_left_when_the_members_have_gone(simulation):
    before = len(simulation.timers)
    simulation.leave(*simulation.stable_group(3))
    assert len(simulation.timers) == before


# restart


def test_members_go_on_after_a_restart_with_their_next_heartbeat(simulation):
    leader, follower = simulation.stable_group()
    simulation.advance(9_000)
    simulation.restart()
    simulation.advance(9_000)
    simulation.heartbeat(leader, 1)
    simulation.heartbeat(follower, 1)
    assert simulation.group.state == "Stable"
    assert simulation.sync(follower, 1).result().assignment == follower.encode()
    result = simulation.join(follower).result()
    assert (result.generation_id, result.leader) == (1, leader), "nothing changed: no rebalance"


def test_members_that_do_not_come_back_after_a_restart_expire(simulation):
    leader, follower = simulation.stable_group()
    simulation.restart()
    simulation.advance(5_000)
    simulation.heartbeat(leader, 1)
    simulation.advance(5_000)
    with pytest.raises(RebalanceInProgress):
        simulation.heartbeat(leader, 1)
    assert follower not in simulation.group.members


def test_a_restart_during_a_rebalance_brings_back_the_last_stable_generation(simulation):
    leader, follower = simulation.stable_group()
    simulation.join_with_id()
    simulation.restart()
    assert simulation.group.state == "Stable"
    assert {m.member_id for m in simulation.group.members} == {leader, follower}
    simulation.heartbeat(leader, 1)


def test_an_empty_group_keeps_its_generation_over_a_restart(simulation):
    simulation.leave(*simulation.stable_group())
    simulation.restart()
    assert (simulation.group.state, simulation.group.generation_id) == ("Empty", 2)


def test_a_static_replacement_survives_a_restart(simulation):
    join = simulation.join(group_instance_id="a")
    simulation.advance(100)
    simulation.settle([join.result()])
    new = simulation.join(group_instance_id="a").result().member_id
    simulation.restart()
    simulation.heartbeat(new, 1, "a")


def test_a_group_over_its_size_after_a_restart_rebalances():
    simulation = Simulation()
    simulation.stable_group(3)
    simulation.settings = type(simulation.settings)(group_max_size=2)
    simulation.restart()
    assert simulation.group.state == "PreparingRebalance"


def test_subscribed_topics_are_known_from_the_metadata(simulation):
    simulation.stable_group(protocols=(("range", subscription("orders")),))
    assert simulation.group.is_subscribed_to("orders")
    assert not simulation.group.is_subscribed_to("payments")
    simulation.restart()
    assert not simulation.group.is_subscribed_to("payments")


def test_with_unreadable_metadata_every_topic_counts_as_subscribed(simulation):
    simulation.stable_group(protocols=RANGE)
    assert simulation.group.is_subscribed_to("payments")
