"""Share groups: who may come with which epoch, what members are told to read, and when."""

from __future__ import annotations

import pytest

from kbroker.coordinators.groups.classic.protocol import JoinRequest
from kbroker.coordinators.groups.consumer.requests import HeartbeatRequest
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidRequest,
    NonEmptyGroup,
    UnknownMemberId,
)
from kbroker.coordinators.groups.heartbeat_pacing import SETTLING_MS, SHORT_INTERVAL_MS
from kbroker.coordinators.groups.share.settings import ShareGroupSettings
from kbroker.pending import Pending
from tests.groups.consumer_support import FakeTopics
from tests.groups.share_support import ShareWorld


@pytest.fixture
def world() -> ShareWorld:
    return ShareWorld(FakeTopics(t=3, u=2))


def test_the_first_answer_names_partitions_that_have_a_state(world):
    result = world.join("m", "t", "u")
    assert world.assigned(result) == {"t": {0, 1, 2}, "u": {0, 1}}
    assert world.initialized() == {("t", 0), ("t", 1), ("t", 2), ("u", 0), ("u", 1)}
    assert world.group().state == "Stable"


def test_the_first_answer_waits_for_both_stores(world):
    world.group_writes.hold()
    world.state_writes.hold()
    result = world.begin("m", 0, "t")
    assert isinstance(result, Pending)
    world.group_writes.let_go()
    assert not result.done
    world.state_writes.let_go()
    assert world.assigned(result.result()) == {"t": {0, 1, 2}}


def test_another_member_waits_for_the_states_that_the_first_one_asked_for(world):
    world.state_writes.hold()
    world.begin("m", 0, "t")
    second = world.begin("n", 0, "t")
    third = world.begin("n", 0, "t")
    assert isinstance(second, Pending)
    assert isinstance(third, Pending)
    world.state_writes.let_go()
    assert second.done
    assert third.done


def test_states_that_could_not_be_stored_are_asked_for_again(world):
    world.state_writes.hold()
    result = world.begin("m", 0, "t")
    world.state_writes.let_go(lambda write: write.fail(OSError("no room")))
    with pytest.raises(CoordinatorNotAvailable):
        result.result()
    assert world.initialized() == set()
    assert world.assigned(world.join("m", "t")) == {"t": {0, 1, 2}}
    assert len(world.initialized()) == 3


def test_the_assignment_comes_only_when_it_is_asked_for_or_new(world):
    epoch = world.join("m", "t").member_epoch
    assert world.heartbeat("m", epoch).assignment is None
    assert world.assigned(world.heartbeat("m", epoch, "t")) == {"t": {0, 1, 2}}
    world.join("n", "t")
    told = world.heartbeat("m", epoch)
    assert told.member_epoch == epoch + 1
    assert len(world.assigned(told)["t"]) in (1, 2)
    assert world.heartbeat("m", epoch + 1).assignment is None


def test_a_member_keeps_a_partition_for_as_long_as_it_holds_records_of_it(world):
    epoch = world.join("m", "u").member_epoch
    world.held = {("u", 0, "m"), ("u", 1, "m")}
    world.join("n", "u")
    told = world.heartbeat("m", epoch)
    assert told.member_epoch == epoch + 1
    assert told.assignment is None
    world.held = set()
    told = world.heartbeat("m", epoch + 1)
    assert told.member_epoch == epoch + 1
    (kept,) = world.assigned(told)["u"]
    assert world.withdrawn == {("u", 1 - kept, "m")}
    assert world.heartbeat("m", epoch + 1).assignment is None
    world.heartbeat("n", -1)
    assert len(world.assigned(world.heartbeat("m", epoch + 1))["u"]) == 2
    assert world.withdrawn == set()


def test_what_is_held_of_a_topic_that_is_no_longer_subscribed_is_not_kept(world):
    epoch = world.join("m", "t", "u").member_epoch
    world.held = {("t", 0, "m")}
    assert world.assigned(world.heartbeat("m", epoch, "u")) == {"u": {0, 1}}


def test_more_members_than_partitions_share_them(world):
    for number in range(5):
        world.join(f"m{number}", "u")
    members = world.group().members.values()
    held = [next(iter(world.group().target[member.member_id].values())) for member in members]
    assert sorted(map(len, held)) == [1, 1, 1, 1, 2]


def test_a_topic_that_is_not_there_yet_is_waited_for(world):
    epoch = world.join("m", "later").member_epoch
    assert world.heartbeat("m", epoch).assignment is None
    world.create_topic("later", 2)
    told = world.heartbeat("m", epoch)
    assert (told.member_epoch, world.assigned(told)) == (epoch + 1, {"later": {0, 1}})
    assert world.initialized() == {("later", 0), ("later", 1)}


def test_new_partitions_are_given_out(world):
    epoch = world.join("m", "u").member_epoch
    world.grow_topic("u", 3)
    assert world.assigned(world.heartbeat("m", epoch)) == {"u": {0, 1, 2}}
    assert ("u", 2) in world.initialized()


def test_a_deleted_topic_is_taken_from_the_members(world):
    epoch = world.join("m", "t", "u").member_epoch
    world.delete_topic("t")
    told = world.heartbeat("m", epoch)
    assert (told.member_epoch, world.assigned(told)) == (epoch + 1, {"u": {0, 1}})


def test_a_changed_subscription_counts_at_once(world):
    epoch = world.join("m", "t").member_epoch
    told = world.heartbeat("m", epoch, "u")
    assert (told.member_epoch, world.assigned(told)) == (epoch + 1, {"u": {0, 1}})


def test_what_is_no_longer_subscribed_goes_even_before_the_next_target():
    world = ShareWorld(FakeTopics(t=3, u=2), ShareGroupSettings(assignment_interval_ms=1_000))
    epoch = world.join("m", "t", "u").member_epoch
    told = world.heartbeat("m", epoch, "u")
    assert (told.member_epoch, world.assigned(told)) == (epoch, {"u": {0, 1}})


def test_targets_are_computed_in_the_configured_interval():
    world = ShareWorld(FakeTopics(t=2), ShareGroupSettings(assignment_interval_ms=1_000))
    epoch = world.join("m", "t").member_epoch
    world.join("n", "t")
    assert world.heartbeat("m", epoch).assignment is None
    world.pass_time(1_000)
    assert len(world.assigned(world.heartbeat("m", epoch))["t"]) == 1


def test_heartbeats_are_frequent_while_the_group_changes_and_for_a_while_after(world):
    joined = world.join("m", "t")
    assert joined.heartbeat_interval_ms == SHORT_INTERVAL_MS
    world.pass_time(SETTLING_MS)
    assert world.heartbeat("m", joined.member_epoch).heartbeat_interval_ms == 5_000


def test_the_epoch_before_is_good_and_any_other_is_fenced(world):
    world.join("m", "t")
    world.join("n", "t")
    epoch = world.heartbeat("m", 2).member_epoch
    assert world.heartbeat("m", epoch - 1).member_epoch == epoch
    for wrong in (epoch - 2, epoch + 1):
        with pytest.raises(FencedMemberEpoch):
            world.heartbeat("m", wrong)
    assert world.join("m", "t").member_epoch == epoch


def test_who_is_unknown_is_told_so(world):
    for epoch in (1, -1):
        with pytest.raises(GroupIdNotFound):
            world.heartbeat("m", epoch)
    world.join("m", "t")
    for epoch in (1, -1):
        with pytest.raises(UnknownMemberId):
            world.heartbeat("n", epoch)


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": ""},
        {"group_id": " "},
        {"member_id": ""},
        {"member_id": "m" * 37},
        {"rack_id": ""},
        {"member_epoch": -2},
        {"subscribed_topic_names": None},
        {"subscribed_topic_names": []},
    ],
    ids=str,
)
def test_a_request_that_makes_no_sense_is_refused_and_leaves_nothing(world, fields):
    with pytest.raises(InvalidRequest):
        world.heartbeat(**{"member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"], **fields})
    assert not world.coordinator.groups


def test_a_group_that_is_full_takes_nobody_else():
    world = ShareWorld(FakeTopics(t=1), ShareGroupSettings(assignment_interval_ms=0, max_size=1))
    world.join("m", "t")
    with pytest.raises(GroupMaxSizeReached):
        world.join("n", "t")
    assert world.join("m", "t").member_epoch
    world.heartbeat("m", -1)
    world.join("n", "t")


def test_who_leaves_is_gone_and_the_group_stays(world):
    world.join("m", "t")
    left = world.heartbeat("m", -1)
    assert (left.member_epoch, left.heartbeat_interval_ms, left.assignment) == (-1, 0, None)
    assert world.group().state == "Empty"
    world.pass_time(100 * 24 * 3_600_000)
    assert world.group().state == "Empty"


def test_who_is_silent_for_a_session_timeout_is_removed(world):
    world.join("m", "t")
    world.join("n", "t")
    world.pass_time(44_000)
    epoch = world.heartbeat("m", 2).member_epoch
    world.pass_time(1_000)
    assert world.group().members.keys() == {"m"}
    assert world.assigned(world.heartbeat("m", epoch)) == {"t": {0, 1, 2}}


def test_a_group_with_members_is_not_deleted_and_an_empty_one_goes_with_its_states(world):
    world.join("m", "t")
    with pytest.raises(NonEmptyGroup):
        world.coordinator.delete_group("g", world.now_ms).result()
    world.heartbeat("m", -1)
    world.coordinator.delete_group("g", world.now_ms).result()
    assert world.initialized() == set()
    assert not world.coordinator.groups
    assert world.restarted().coordinator.groups == {}


def test_who_joins_a_group_while_it_is_deleted_gets_new_states(world):
    world.join("m", "t")
    world.heartbeat("m", -1)
    world.state_writes.hold()
    world.group_writes.hold()
    world.coordinator.delete_group("g", world.now_ms)
    joined = world.begin("n", 0, "t")
    world.state_writes.let_go()
    world.group_writes.let_go()
    epoch = joined.result().member_epoch
    world.heartbeat("n", epoch)
    assert len(world.initialized()) == 3


def test_members_and_epochs_are_good_after_a_restart(world):
    world.join("m", "t", rack_id="r", client_id="c", client_host="/h")
    epoch = world.join("n", "t").member_epoch
    again = world.restarted()
    assert again.group().members == world.group().members
    assert again.group().target == world.group().target
    assert again.heartbeat("n", epoch).assignment is None
    again.pass_time(45_000)
    assert again.group().state == "Empty"


def test_an_empty_group_can_be_made_before_anybody_joins(world):
    made = world.coordinator.share_groups.create_empty("g", world.now_ms)
    assert made is world.group()
    assert world.restarted().group().state == "Empty"
    assert world.assigned(world.join("m", "t")) == {"t": {0, 1, 2}}


def test_a_group_of_another_type_is_no_share_group(world):
    world.coordinator.get_or_create_simple("g", world.now_ms)
    with pytest.raises(GroupIdNotFound):
        world.join("m", "t")
    with pytest.raises(GroupIdNotFound):
        world.coordinator.share_groups.create_empty("g", world.now_ms)


def test_nobody_joins_a_share_group_by_another_protocol(world):
    world.join("m", "t")
    world.heartbeat("m", -1)
    request = JoinRequest("g", "", None, "app", "/h", 10_000, 10_000, "consumer", (("range", b""),))
    with pytest.raises(InconsistentGroupProtocol):
        world.coordinator.join_group(request, world.now_ms).result()
    heartbeat = HeartbeatRequest("g", "c", 0, rebalance_timeout_ms=1, subscribed_topic_names=["t"], owned={})
    with pytest.raises(GroupIdNotFound):
        world.coordinator.consumer_groups.heartbeat(heartbeat, world.now_ms)
    assert world.group().type == "share"
