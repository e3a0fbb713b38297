"""Who may commit and fetch offsets in a consumer group, by epoch."""

from __future__ import annotations

import pytest
from consumer_support import FakeTopics, World

from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.errors import (
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)


@pytest.fixture
def world() -> World:
    return World(FakeTopics(t=4))


def commit(
    group: ConsumerGroup, member_id: str, epoch: int, api_version: int = 9, transactional: bool = False
):
    return group.validate_offset_commit(
        member_id, None, epoch, api_version=api_version, transactional=transactional
    )


def test_anybody_commits_to_an_empty_group_without_an_epoch(world: World):
    world.join("m", "t")
    world.leave("m")
    assert commit(world.group(), "", -1) is None


def test_only_members_commit_to_a_group_that_has_some(world: World):
    world.join("m", "t")
    with pytest.raises(UnknownMemberId):
        commit(world.group(), "", -1)
    with pytest.raises(UnknownMemberId):
        commit(world.group(), "n", 2)


def test_a_member_commits_with_its_epoch(world: World):
    epoch = world.join("m", "t").member_epoch
    assert commit(world.group(), "m", epoch) is None


def test_a_greater_epoch_is_stale(world: World):
    epoch = world.join("m", "t").member_epoch
    with pytest.raises(StaleMemberEpoch):
        commit(world.group(), "m", epoch + 1)


def test_versions_without_a_member_epoch_are_not_supported(world: World):
    epoch = world.join("m", "t").member_epoch
    with pytest.raises(UnsupportedVersion):
        commit(world.group(), "m", epoch, api_version=8)
    assert commit(world.group(), "m", epoch, api_version=3, transactional=True) is None


def test_a_transaction_need_not_name_a_member(world: World):
    world.join("m", "t")
    assert commit(world.group(), "", -1, transactional=True) is None


def test_an_older_epoch_commits_the_partitions_held_since_then(world: World):
    world.join("m", "t")
    world.join("n", "t")
    world.heartbeat("m", 2, {"t": {0, 1}})
    world.leave("n")
    world.heartbeat("m", 3)
    topic_id = world.topics.topic_id("t")
    assert topic_id is not None
    check = commit(world.group(), "m", 2)
    assert check is not None
    check(topic_id, 0)
    for refused in ((topic_id, 2), (topic_id, 9), (bytes(16), 0), (None, 0)):
        with pytest.raises(StaleMemberEpoch):
            check(*refused)


def test_partitions_pending_revocation_may_be_committed_with_the_epoch_they_have(world: World):
    world.join("m", "t")
    world.join("n", "t")
    world.heartbeat("m", 2)
    assert commit(world.group(), "m", 2) is None


def test_fetching_offsets_without_a_member_is_for_everybody(world: World):
    world.join("m", "t")
    world.group().validate_offset_fetch(None, -1)


def test_a_member_fetches_offsets_with_its_own_epoch_only(world: World):
    epoch = world.join("m", "t").member_epoch
    world.group().validate_offset_fetch("m", epoch)
    for other in (epoch - 1, epoch + 1, -1):
        with pytest.raises(StaleMemberEpoch):
            world.group().validate_offset_fetch("m", other)
    with pytest.raises(UnknownMemberId):
        world.group().validate_offset_fetch("n", epoch)


def test_a_group_with_members_is_not_deleted(world: World):
    world.join("m", "t")
    with pytest.raises(NonEmptyGroup):
        world.group().validate_delete()
    world.leave("m")
    world.group().validate_delete()
