"""What heartbeats do to a streams group. What Kafka answers: compat/differential/streams_groups."""

from __future__ import annotations

from dataclasses import replace

import pytest
from consumer_support import FakeTopics
from streams_support import AT_ONCE, World, codes, sub, tasks, topology

from kbroker.coordinators.groups.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    NonEmptyGroup,
    StaleMemberEpoch,
    StreamsInvalidTopology,
    UnknownMemberId,
)
from kbroker.coordinators.groups.streams.configured_topology import StatusCode
from kbroker.coordinators.groups.streams.settings import StreamsGroupSettings


@pytest.fixture
def world() -> World:
    return World(FakeTopics(t=4, u=2))


def shared(world: World) -> None:
    """Members m and n, two tasks each, both in epoch 3."""
    world.join("m")
    world.join("n")
    world.heartbeat("m", 2)
    world.heartbeat("m", 2, tasks({"0": [0, 1]}))
    world.heartbeat("n", 3)


def test_the_first_member_gets_all_tasks(world):
    result = world.join("m")
    assert (result.member_epoch, result.tasks) == (2, tasks({"0": [0, 1, 2, 3]}))
    assert world.group().state == "Stable"


def test_a_task_reaches_its_new_owner_when_the_old_one_has_given_it_up(world):
    world.join("m")
    assert world.join("n").tasks == tasks()
    told = world.heartbeat("m", 2)
    assert (told.member_epoch, told.tasks) == (2, tasks({"0": [0, 1]}))
    assert world.heartbeat("n", 3).tasks is None
    assert world.heartbeat("m", 2, tasks({"0": [0, 1, 2]})).member_epoch == 2, "it still has one too many"
    assert world.heartbeat("m", 2, tasks({"0": [0, 1]})).member_epoch == 3
    assert world.heartbeat("n", 3).tasks == tasks({"0": [2, 3]})
    assert world.group().state == "Stable"


def test_a_member_that_does_not_give_up_in_time_is_fenced(world):
    world.join("m", rebalance_timeout_ms=5_000)
    world.join("n")
    world.heartbeat("m", 2)
    world.pass_time(5_000)
    with pytest.raises(UnknownMemberId):
        world.heartbeat("m", 2)
    assert world.heartbeat("n", 3).tasks == tasks({"0": [0, 1, 2, 3]})


def test_a_member_that_is_silent_is_fenced(world):
    world.join("m")
    world.pass_time(world.settings.session_timeout_ms)
    assert world.group().is_empty


def test_the_members_of_a_restored_group_have_a_session_to_show_up(world):
    shared(world)
    after = world.restarted()
    assert after.heartbeat("m", 3).tasks is None
    after.pass_time(world.settings.session_timeout_ms)
    assert after.group().is_empty


def test_a_group_is_after_a_restart_what_it_was(world):
    world.join("m", sub("0", "t", changelogs=("u",)), client_tags={"zone": "a"}, rack_id="r")
    shared_state = world.restarted().group()
    group = world.group()
    assert (shared_state.members, shared_state.target) == (group.members, group.target)
    assert (shared_state.topology, shared_state.state) == (group.topology, group.state)
    assert (shared_state.group_epoch, shared_state.assignment_epoch) == (2, 2)


def test_a_handover_goes_on_after_a_restart(world):
    world.join("m")
    world.join("n")
    world.heartbeat("m", 2)
    after = world.restarted()
    assert after.heartbeat("n", 3).tasks is None
    assert after.heartbeat("m", 2, tasks({"0": [0, 1]})).member_epoch == 3
    assert after.heartbeat("n", 3).tasks == tasks({"0": [2, 3]})


def test_missing_internal_topics_are_named_with_their_width(world):
    result = world.join("m", sub("0", "t", changelogs=("store",)))
    assert codes(result) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert [(topic.name, topic.partitions) for topic in result.to_create] == [("store", 4)]
    assert world.group().state == "NotReady"
    world.create_topic("store", 4)
    after = world.heartbeat("m", 2)
    assert (codes(after), after.to_create, after.tasks) == ([], (), tasks({"0": [0, 1, 2, 3]}))


def test_a_group_whose_source_is_deleted_gives_up_its_tasks(world):
    world.join("m")
    world.delete_topic("t")
    result = world.heartbeat("m", 2)
    assert (codes(result), result.tasks) == ([StatusCode.MISSING_SOURCE_TOPICS], tasks())


def test_a_topic_that_grows_has_more_tasks(world):
    world.join("m", sub("0", "u"))
    world.grow_topic("u", 3)
    assert world.heartbeat("m", 2).tasks == tasks({"0": [0, 1, 2]})


def test_topics_of_others_do_not_matter(world):
    world.join("m")
    world.create_topic("v", 3)
    assert world.heartbeat("m", 2).member_epoch == 2


def test_standbys_follow_the_config(world):
    world.topics.create("store", 4)
    stateful = sub("0", "t", changelogs=("store",))
    world.join("m", stateful)
    world.join("n", stateful)
    world.heartbeat("m", 2)
    world.heartbeat("m", 2, tasks({"0": [0, 1]}))
    world.heartbeat("n", 3)
    world.settings = replace(AT_ONCE, num_standby_replicas=1)
    assert world.heartbeat("m", 3).tasks == tasks({"0": [0, 1]}, {"0": [2, 3]})
    assert world.heartbeat("n", 3).tasks == tasks({"0": [2, 3]}, {"0": [0, 1]})


def test_a_standby_is_given_up_before_the_task_becomes_active_in_its_process(world):
    world.settings = replace(AT_ONCE, num_standby_replicas=1)
    world.topics.create("store", 2)
    stateful = sub("0", "u", changelogs=("store",))
    world.join("m", stateful)
    world.join("n", stateful)
    world.heartbeat("m", 2)
    world.heartbeat("m", 2, tasks({"0": [0]}))
    world.heartbeat("n", 3)
    world.heartbeat("m", 3)
    world.heartbeat("n", -1)
    told = world.heartbeat("m", 3)
    assert (told.tasks, told.member_epoch) == (tasks({"0": [0]}), 3)
    world.heartbeat("m", 3, tasks({"0": [0]}))
    assert world.heartbeat("m", 4).tasks == tasks({"0": [0, 1]})


def test_the_first_assignment_waits_until_nobody_comes_for_a_moment():
    world = World(FakeTopics(t=4), StreamsGroupSettings())
    assert (world.join("m").tasks, codes(world.join("n"))) == (tasks(), [StatusCode.ASSIGNMENT_DELAYED])
    world.pass_time(60)
    world.join("o")
    world.pass_time(60)
    assert codes(world.heartbeat("m", 1)) == [StatusCode.ASSIGNMENT_DELAYED]
    world.pass_time(60)
    counts = [len(world.heartbeat(member, 1).tasks.active) for member in "mno"]
    assert sorted(counts) == [1, 1, 2], "nobody has to give up anything"


def test_a_configured_delay_is_kept_whoever_comes():
    world = World(FakeTopics(t=4), replace(AT_ONCE, initial_rebalance_delay_ms=3_000))
    world.join("m")
    world.pass_time(2_900)
    world.join("n")
    assert codes(world.heartbeat("m", 1)) == [StatusCode.ASSIGNMENT_DELAYED]
    world.pass_time(100)
    assert len(world.heartbeat("m", 1).tasks.active) == 2


def test_later_assignments_keep_their_distance():
    world = World(FakeTopics(t=4), replace(AT_ONCE, assignment_interval_ms=1_000))
    world.join("m")
    assert codes(world.join("n")) == [StatusCode.ASSIGNMENT_DELAYED]
    world.pass_time(1_000)
    assert world.heartbeat("n", 2).member_epoch == 3


def test_heartbeats_come_soon_while_the_group_changes_and_seldom_after(world):
    assert world.join("m").heartbeat_interval_ms == 100
    world.pass_time(10_000)
    assert world.heartbeat("m", 2).heartbeat_interval_ms == world.settings.heartbeat_interval_ms


def test_a_shutdown_is_told_to_all_until_the_group_is_empty(world):
    shared(world)
    world.heartbeat("m", 3, shutdown_application=True)
    assert codes(world.heartbeat("n", 3)) == [StatusCode.SHUTDOWN_APPLICATION]
    world.heartbeat("m", -1)
    assert codes(world.heartbeat("n", 3)) == [StatusCode.SHUTDOWN_APPLICATION]
    world.heartbeat("n", -1)
    assert codes(world.join("m")) == []


def test_who_has_an_older_topology_is_told_and_who_has_another_refused(world):
    world.join("m", topology=topology(sub("0", "t"), epoch=2))
    older = world.join("n", topology=topology(sub("0", "u"), epoch=1))
    assert codes(older) == [StatusCode.STALE_TOPOLOGY]
    for epoch in (2, 3):
        with pytest.raises(InvalidRequest):
            world.join("o", topology=topology(sub("0", "u"), epoch=epoch))
    assert world.group().members.keys() == {"m", "n"}


def test_a_topology_that_can_never_run_makes_no_group(world):
    with pytest.raises(StreamsInvalidTopology):
        world.join("m", sub("0", sinks=("r",), repartitions={}))
    assert world.groups == {}


def test_a_full_group_takes_nobody_in(world):
    world.settings = replace(AT_ONCE, max_size=1)
    world.join("m")
    with pytest.raises(GroupMaxSizeReached):
        world.join("n")
    assert world.join("m").member_epoch == 2


def test_who_missed_an_answer_may_be_an_epoch_behind(world):
    shared(world)
    assert world.heartbeat("m", 2, tasks({"0": [0, 1]})).member_epoch == 3
    for epoch, owned in ((2, None), (2, tasks({"0": [2]})), (1, tasks()), (4, tasks())):
        with pytest.raises(FencedMemberEpoch):
            world.heartbeat("m", epoch, owned)


def test_who_says_everything_is_told_everything(world):
    world.join("m")
    world.join("n")
    world.heartbeat("m", 2)  # whose answer is lost
    everything = tasks({"0": [0, 1, 2, 3]})
    assert world.heartbeat("m", 2, everything).tasks is None
    assert world.heartbeat("m", 2, everything, rebalance_timeout_ms=60_000).tasks == tasks({"0": [0, 1]})


def test_tasks_that_there_are_not_are_refused(world):
    world.join("m")
    for wrong in (tasks({"1": [0]}), tasks({"0": [4]}), tasks({"0": [-1]}), tasks({}, {"0": [9]})):
        with pytest.raises(InvalidRequest):
            world.heartbeat("m", 2, wrong)


def test_offsets_are_committed_at_the_epoch_of_the_task_or_later(world):
    shared(world)
    world.heartbeat("m", 3)
    group, t = world.group(), world.topics.topic_id("t")
    assert group.validate_offset_commit("m", None, 3, api_version=9) is None
    check = group.validate_offset_commit("m", None, 2, api_version=9)
    check(t, 0)
    for topic_id, partition in ((t, 2), (world.topics.topic_id("u"), 0), (None, 0)):
        with pytest.raises(StaleMemberEpoch):
            check(topic_id, partition)
    with pytest.raises(StaleMemberEpoch):
        group.validate_offset_commit("m", None, 4, api_version=9)
    with pytest.raises(UnknownMemberId):
        group.validate_offset_commit("", None, -1, api_version=9)


def test_a_group_with_members_is_not_deleted_nor_its_offsets(world):
    world.join("m")
    with pytest.raises(NonEmptyGroup):
        world.group().validate_delete()
    assert (world.group().is_subscribed_to("t"), world.group().is_subscribed_to("u")) == (True, False)
    world.heartbeat("m", -1)
    world.group().validate_delete()
    assert not world.group().is_subscribed_to("t")


def test_a_group_that_is_not_there_is_not_found(world):
    with pytest.raises(GroupIdNotFound):
        world.heartbeat("m", 1)
