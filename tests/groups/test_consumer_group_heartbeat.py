"""ConsumerGroupHeartbeat, rule by rule.

Who is refused and why, epochs, reconciliation, time-outs, static members.
"""

from __future__ import annotations

from typing import Any

import pytest
from consumer_support import FakeTopics, World

from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings
from kbroker.coordinators.groups.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)


@pytest.fixture
def world() -> World:
    return World(FakeTopics(t=4, u=2))


def settle(world: World, *members: str) -> None:
    """Heartbeat all members, who do at once what they are told, until the group is stable."""
    for _ in range(10):
        for member_id in members:
            member = world.group().members[member_id]
            world.heartbeat(member_id, member.member_epoch, world.by_name(member.assigned))
        if world.group().state == "Stable":
            return
    raise AssertionError("the group does not settle")


# requests that make no sense


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"member_id": ""}, "MemberId"),
        ({"group_id": " "}, "GroupId"),
        ({"instance_id": ""}, "InstanceId"),
        ({"rack_id": ""}, "RackId"),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs"),
        ({"owned": None}, "TopicPartitions"),
        ({"owned": {"t": {0}}}, "TopicPartitions"),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames"),
        ({"member_epoch": -3}, "MemberEpoch"),
        ({"member_epoch": -2}, "InstanceId"),
        ({"member_epoch": -1, "member_id": "", "brings_member_id": False}, "MemberId"),
        ({"member_epoch": 1, "member_id": "", "brings_member_id": False}, "MemberId"),
    ],
)
def test_a_request_that_lacks_something_is_invalid(world: World, fields: dict[str, Any], named: str):
    request = {
        "member_id": "m",
        "member_epoch": 0,
        "owned": {},
        "rebalance_timeout_ms": 1,
        "subscribed_topic_names": ["t"],
        **fields,
    }
    with pytest.raises(InvalidRequest) as refused:
        world.heartbeat(**request)
    assert named in str(refused.value)
    assert not world.groups


def test_an_assignor_that_the_broker_does_not_have_is_refused(world: World):
    with pytest.raises(UnsupportedAssignor, match=r"sticky.*uniform, range"):
        world.join("m", "t", server_assignor="sticky")


def test_a_heartbeat_to_an_unknown_group_finds_none(world: World):
    for epoch in (5, -1):
        with pytest.raises(GroupIdNotFound):
            world.heartbeat("m", epoch)


def test_an_invalid_regular_expression_is_refused_and_leaves_no_trace(world: World):
    with pytest.raises(InvalidRegularExpression):
        world.join("m", subscribed_topic_regex="a(")
    assert not world.groups


def test_a_full_group_takes_no_new_member_and_keeps_its_own(world: World):
    world.settings = ConsumerGroupSettings(max_size=1)
    epoch = world.join("m", "t").member_epoch
    with pytest.raises(GroupMaxSizeReached):
        world.join("n", "t")
    assert world.heartbeat("m", epoch).member_epoch == epoch


# joining


def test_the_first_member_gets_everything_at_once(world: World):
    result = world.join("m", "t", "u")
    assert result.member_id == "m"
    assert result.member_epoch == 2
    assert world.assigned(result) == {"t": {0, 1, 2, 3}, "u": {0, 1}}
    assert world.group().state == "Stable"


def test_version_0_gets_its_member_id_from_the_broker(world: World):
    assert world.join("", "t", brings_member_id=False).member_id == "generated-1"


def test_a_topic_that_does_not_exist_is_waited_for(world: World):
    result = world.join("m", "later")
    assert world.assigned(result) == {}
    world.create_topic("later", 2)
    result = world.heartbeat("m", result.member_epoch)
    assert world.assigned(result) == {"later": {0, 1}}


def test_a_member_without_subscription_belongs_to_the_group_and_gets_nothing(world: World):
    result = world.join("m")
    assert (result.member_epoch, world.assigned(result)) == (1, {})
    assert list(world.group().members) == ["m"]


def test_a_member_that_joins_again_with_epoch_0_keeps_its_partitions(world: World):
    first = world.join("m", "t")
    again = world.join("m", "t")
    assert again == first


# when the assignment is in the answer


def test_the_assignment_is_sent_when_it_changes_or_when_the_request_is_full(world: World):
    epoch = world.join("m", "t").member_epoch
    assert world.heartbeat("m", epoch).assignment is None
    assert world.heartbeat("m", epoch, {"t": {0, 1, 2, 3}}).assignment is None
    full = world.heartbeat(
        "m", epoch, {"t": {0, 1, 2, 3}}, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"]
    )
    assert world.assigned(full) == {"t": {0, 1, 2, 3}}


# epochs


def test_a_member_nobody_knows_is_unknown(world: World):
    world.join("m", "t")
    with pytest.raises(UnknownMemberId):
        world.heartbeat("n", 2)
    with pytest.raises(UnknownMemberId):
        world.leave("n")


def test_a_greater_epoch_than_the_members_is_fenced(world: World):
    epoch = world.join("m", "t").member_epoch
    with pytest.raises(FencedMemberEpoch):
        world.heartbeat("m", epoch + 1)


def test_the_previous_epoch_is_accepted_if_the_member_owns_nothing_it_should_not(world: World):
    first = world.join("m", "t").member_epoch
    second = world.heartbeat("m", first, {"t": {0, 1, 2, 3}}, subscribed_topic_names=["t", "u"]).member_epoch
    assert second == first + 1
    assert world.heartbeat("m", first, {"t": {0, 1}}).member_epoch == second
    for owned in (None, {"ee" * 16: {0}}, {"t": {7}}):
        with pytest.raises(FencedMemberEpoch):
            world.heartbeat("m", first, owned)


def test_an_epoch_before_the_previous_one_is_fenced(world: World):
    epoch = world.join("m", "t").member_epoch
    world.heartbeat("m", epoch, subscribed_topic_names=["t", "u"])
    world.heartbeat("m", epoch + 1, subscribed_topic_names=["u"], owned={})
    with pytest.raises(FencedMemberEpoch):
        world.heartbeat("m", epoch, {})


# reconciliation


def test_a_partition_goes_to_the_new_member_only_after_the_old_one_gave_it_up(world: World):
    world.join("m", "t")
    joined = world.join("n", "t")
    assert world.assigned(joined) == {}
    assert joined.member_epoch == 3
    assert world.group().state == "Reconciling"

    told = world.heartbeat("m", 2)
    assert told.member_epoch == 2  # it stays in its epoch until it has given up
    assert world.assigned(told) == {"t": {0, 1}}
    assert world.heartbeat("n", 3).assignment is None
    assert world.heartbeat("m", 2, {"t": {0, 1, 2, 3}}).assignment is None  # still at it

    done = world.heartbeat("m", 2, {"t": {0, 1}})
    assert done.member_epoch == 3
    assert world.assigned(world.heartbeat("n", 3)) == {"t": {2, 3}}
    assert world.group().state == "Stable"


def test_a_partition_that_comes_back_before_it_was_given_up_is_assigned_again(world: World):
    world.join("m", "t")
    world.join("n", "t")
    world.heartbeat("m", 2)
    world.leave("n")
    result = world.heartbeat("m", 2, {"t": {0, 1}})
    assert world.assigned(result) == {"t": {0, 1, 2, 3}}
    assert world.group().state == "Stable"


def test_partitions_are_taken_as_they_become_free(world: World):
    world.join("a", "t")
    world.join("b", "t")
    settle(world, "a", "b")
    world.join("c", subscribed_topic_names=["t"], server_assignor="range")
    world.heartbeat("a", 3, {"t": {0, 1}})
    held = {m: world.by_name(world.group().members[m].assigned) for m in "abc"}
    assert sum(len(topics.get("t", ())) for topics in held.values()) <= 4
    settle(world, "a", "b", "c")


def test_unsubscribed_topics_are_given_up_although_the_target_is_not_computed_yet(world: World):
    epoch = world.join("m", "t", "u").member_epoch
    world.settings = ConsumerGroupSettings(assignment_interval_ms=15_000)
    told = world.heartbeat("m", epoch, {"t": {0, 1, 2, 3}, "u": {0, 1}}, subscribed_topic_names=["u"])
    assert world.assigned(told) == {"u": {0, 1}}
    assert world.group().state == "Assigning"


def test_the_target_is_not_computed_more_often_than_the_interval_says(world: World):
    world.settings = ConsumerGroupSettings(assignment_interval_ms=1_000)
    world.join("a", "t")
    world.pass_time(500)
    assert world.assigned(world.join("b", "t")) == {}
    assert world.group().state == "Assigning"
    world.pass_time(500)
    world.heartbeat("b", 2)
    assert world.group().state == "Reconciling"


# assignors


def test_the_assignor_that_most_members_name_is_used(world: World):
    world.join("a", "t", "u", server_assignor="range")
    world.join("b", "t", "u", server_assignor="range")
    world.join("c", "t", "u", server_assignor="uniform")
    assert world.group().preferred_assignor() == "range"


def test_the_first_configured_assignor_is_the_default(world: World):
    world.topics.create("v", 3)
    world.settings = ConsumerGroupSettings(assignors=("range", "uniform"), assignment_interval_ms=0)
    for member_id in ("a", "b"):
        world.join(member_id, "t", "v")
    settle(world, "a", "b")
    assert world.by_name(world.group().target["a"]) == {"t": {0, 1}, "v": {0, 1}}


# leaving, and not being heard of


def test_a_leaving_members_partitions_go_to_the_others(world: World):
    world.join("m", "t")
    world.join("n", "t")
    settle(world, "m", "n")
    left = world.leave("n")
    assert (left.member_id, left.member_epoch, left.heartbeat_interval_ms) == ("n", -1, 0)
    assert world.assigned(world.heartbeat("m", 3, {"t": {0, 1}})) == {"t": {0, 1, 2, 3}}


def test_a_group_that_all_have_left_is_empty_and_its_epoch_goes_on(world: World):
    world.join("m", "t")
    world.leave("m")
    assert (world.group().state, world.group().group_epoch) == ("Empty", 3)
    assert world.join("n", "t").member_epoch == 4


def test_a_member_that_sends_no_heartbeat_within_the_session_timeout_is_removed(world: World):
    world.join("m", "t")
    world.pass_time(44_999)
    assert "m" in world.group().members
    world.pass_time(1)
    assert world.group().state == "Empty"
    with pytest.raises(UnknownMemberId):
        world.heartbeat("m", 2)


def test_every_heartbeat_starts_the_session_timeout_anew(world: World):
    epoch = world.join("m", "t").member_epoch
    for _ in range(5):
        world.pass_time(40_000)
        world.heartbeat("m", epoch)
    assert world.group().state == "Stable"


def test_the_session_timeout_is_the_configured_one(world: World):
    world.settings = ConsumerGroupSettings(session_timeout_ms=60_000)
    world.join("m", "t")
    world.pass_time(59_999)
    assert not world.group().is_empty
    world.pass_time(1)
    assert world.group().is_empty


def test_a_member_that_does_not_give_up_its_partitions_in_time_is_removed(world: World):
    world.join("m", "t", rebalance_timeout_ms=30_000)
    world.join("n", "t")
    for _ in range(3):
        world.heartbeat("m", 2, {"t": {0, 1, 2, 3}})
        world.heartbeat("n", 3)
        world.pass_time(10_000)
    assert list(world.group().members) == ["n"]
    assert world.assigned(world.heartbeat("n", 3)) == {"t": {0, 1, 2, 3}}


def test_a_member_that_gives_up_its_partitions_in_time_stays(world: World):
    world.join("m", "t", rebalance_timeout_ms=30_000)
    world.join("n", "t")
    world.heartbeat("m", 2)
    world.pass_time(20_000)
    world.heartbeat("m", 2, {"t": {0, 1}})
    world.heartbeat("n", 3)
    world.pass_time(20_000)
    assert world.group().members.keys() == {"m", "n"}


# static members


def test_a_static_member_that_left_for_a_while_gets_its_partitions_back_under_a_new_id(world: World):
    world.join("old", "t", instance_id="i")
    world.join("other", "t")
    settle(world, "old", "other")
    epoch = world.group().group_epoch
    before = world.by_name(world.group().members["old"].assigned)
    left = world.leave("old", -2, instance_id="i")
    assert (left.member_id, left.member_epoch) == ("old", -2)
    world.heartbeat("other", epoch)
    back = world.join("new", "t", instance_id="i")
    assert (back.member_epoch, world.assigned(back)) == (epoch, before)
    assert world.group().group_epoch == epoch
    assert world.group().members.keys() == {"new", "other"}
    assert world.group().state == "Stable"


def test_a_static_member_that_does_not_come_back_within_the_session_timeout_is_removed(world: World):
    world.join("old", "t", instance_id="i")
    world.leave("old", -2, instance_id="i")
    world.pass_time(45_000)
    assert world.group().is_empty
    assert not world.group().static_members


def test_the_session_timeout_of_a_replaced_static_member_does_not_hit_its_successor(world: World):
    world.join("old", "t", instance_id="i")
    world.leave("old", -2, instance_id="i")
    world.pass_time(30_000)
    world.join("new", "t", instance_id="i")
    world.pass_time(30_000)
    assert list(world.group().members) == ["new"]


def test_an_instance_id_in_use_is_not_released(world: World):
    world.join("old", "t", instance_id="i")
    with pytest.raises(UnreleasedInstanceId):
        world.join("new", "t", instance_id="i")


def test_a_heartbeat_of_a_replaced_static_member_is_fenced(world: World):
    world.join("old", "t", instance_id="i")
    world.leave("old", -2, instance_id="i")
    epoch = world.join("new", "t", instance_id="i").member_epoch
    with pytest.raises(FencedInstanceId):
        world.heartbeat("old", epoch, instance_id="i")
    with pytest.raises(FencedInstanceId):
        world.leave("old", instance_id="i")


def test_an_unknown_instance_id_is_an_unknown_member(world: World):
    world.join("m", "t")
    with pytest.raises(UnknownMemberId):
        world.heartbeat("m", 2, instance_id="i")
    with pytest.raises(UnknownMemberId):
        world.leave("m", instance_id="i")


def test_a_static_member_that_leaves_for_good_is_removed(world: World):
    world.join("m", "t", instance_id="i")
    world.leave("m", instance_id="i")
    assert world.group().is_empty


# topics that change


def test_new_partitions_are_assigned_with_the_next_heartbeat(world: World):
    epoch = world.join("m", "t").member_epoch
    world.grow_topic("t", 6)
    result = world.heartbeat("m", epoch)
    assert (result.member_epoch, world.assigned(result)) == (epoch + 1, {"t": set(range(6))})


def test_a_deleted_topic_is_revoked(world: World):
    epoch = world.join("m", "t", "u").member_epoch
    topic_id = world.topics.topic_id("t")
    assert topic_id is not None
    world.delete_topic("t")
    told = world.heartbeat("m", epoch)
    assert world.assigned(told) == {"u": {0, 1}}
    done = world.heartbeat("m", epoch, {"u": {0, 1}})
    assert done.member_epoch == epoch + 1
    assert world.group().state == "Stable"


def test_a_topic_made_anew_is_another_topic(world: World):
    epoch = world.join("m", "t").member_epoch
    world.delete_topic("t")
    world.create_topic("t", 2)
    told = world.heartbeat("m", epoch, {})
    assert world.assigned(told) == {"t": {0, 1}}
    assert told.member_epoch == epoch + 1


def test_a_topic_nobody_subscribes_to_changes_nothing(world: World):
    epoch = world.join("m", "t").member_epoch
    world.grow_topic("u", 9)
    world.create_topic("v", 1)
    assert world.heartbeat("m", epoch).member_epoch == epoch


# regular expressions


def test_a_regular_expression_subscribes_to_the_matching_topics(world: World):
    result = world.join("m", subscribed_topic_regex="[tu]")
    assert world.assigned(result) == {"t": {0, 1, 2, 3}, "u": {0, 1}}


def test_a_new_matching_topic_is_assigned_with_the_next_heartbeat(world: World):
    epoch = world.join("m", subscribed_topic_regex="x.*").member_epoch
    world.create_topic("yyy", 1)
    assert world.heartbeat("m", epoch).assignment is None
    world.create_topic("xyz", 1)
    assert world.assigned(world.heartbeat("m", epoch)) == {"xyz": {0}}


def test_a_deleted_matching_topic_is_revoked(world: World):
    epoch = world.join("m", subscribed_topic_regex="[tu]").member_epoch
    world.delete_topic("t")
    assert world.assigned(world.heartbeat("m", epoch, {"u": {0, 1}})) == {"u": {0, 1}}
    assert not world.group().is_subscribed_to("t")


def test_names_and_a_regular_expression_add_up(world: World):
    result = world.join("m", subscribed_topic_names=["t"], subscribed_topic_regex="u.*")
    assert world.assigned(result) == {"t": {0, 1, 2, 3}, "u": {0, 1}}


def test_another_regular_expression_replaces_the_first(world: World):
    epoch = world.join("m", subscribed_topic_regex="t").member_epoch
    told = world.heartbeat("m", epoch, {}, subscribed_topic_regex="u")
    assert world.assigned(told) == {"u": {0, 1}}
    told = world.heartbeat("m", told.member_epoch, {}, subscribed_topic_regex="")
    assert world.assigned(told) == {}
    assert not world.group().is_subscribed_to("u")
