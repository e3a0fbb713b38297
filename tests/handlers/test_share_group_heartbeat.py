from __future__ import annotations

import pytest

from kbroker.config.resources import Change, Operation, ResourceType
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kbroker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


@pytest.fixture
def topic_id(cluster) -> bytes:
    return cluster.create("t", partitions=2).topic_id


def beat(cluster, member_epoch: int, *topics: str, **fields) -> ShareGroupHeartbeatResponse:
    fields = {"group_id": "g", "member_id": "m", "subscribed_topic_names": list(topics) or None, **fields}
    return cluster.send(ShareGroupHeartbeatRequest(member_epoch=member_epoch, **fields), 1)


def test_who_joins_is_told_what_to_read_in_the_first_answer(cluster, topic_id):
    assert beat(cluster, 0, "t") == ShareGroupHeartbeatResponse(
        member_id="m",
        member_epoch=2,
        heartbeat_interval_ms=100,
        assignment=Assignment([TopicPartitions(topic_id, [0, 1])]),
    )
    assert beat(cluster, 2).assignment is None
    assert set(cluster.broker.share_states.initialized("g")) == {(topic_id, 0), (topic_id, 1)}


def test_who_leaves_is_told_its_epoch(cluster, topic_id):
    beat(cluster, 0, "t")
    assert beat(cluster, -1) == ShareGroupHeartbeatResponse(member_id="m", member_epoch=-1)


def test_a_refusal_says_why(cluster, topic_id):
    assert beat(cluster, 0).error_code == ErrorCode.INVALID_REQUEST
    refused = beat(cluster, 3)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g not found.",
    )
    beat(cluster, 0, "t")
    assert beat(cluster, 3).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(cluster, 2, member_id="n").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_deleted_topic_takes_its_states_along(cluster, topic_id):
    beat(cluster, 0, "t")
    cluster.broker.topics.delete(cluster.broker.topics.get("t")).result()
    assert not cluster.broker.share_states.initialized("g")
    cluster.now_ms += 1_000
    told = beat(cluster, 2)
    assert (told.member_epoch, told.assignment) == (3, Assignment([]))


def test_configs_of_the_group_count_from_the_next_heartbeat_on(cluster, topic_id):
    beat(cluster, 0, "t")
    cluster.now_ms += 20_000
    assert beat(cluster, 2).heartbeat_interval_ms == 5_000
    change = Change("share.heartbeat.interval.ms", Operation.SET, "6000")
    cluster.broker.dynamic_configs.alter(ResourceType.GROUP, "g", [change])
    assert beat(cluster, 2).heartbeat_interval_ms == 6_000


def test_members_are_there_after_a_restart_and_states_without_a_group_are_not(cluster, topic_id):
    beat(cluster, 0, "t")
    cluster.broker.share_states.initialize("orphan", [(topic_id, 0)]).result()
    cluster.broker = cluster.start({})
    assert beat(cluster, 2).error_code == ErrorCode.NONE
    assert cluster.broker.share_states.groups() == {"g"}


def test_without_the_feature_there_are_no_share_groups(cluster, topic_id):
    update = FeatureUpdateKey("share.version", 0, upgrade_type=2)
    assert cluster.send(UpdateFeaturesRequest(feature_updates=[update]), 2).error_code == ErrorCode.NONE
    assert beat(cluster, 0, "t").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_member_subscribes_to_so_many_topics(cluster, topic_id):
    names = ["t", *(f"missing-{number}" for number in range(20_000))]
    assert beat(cluster, 0, *names).error_code == ErrorCode.INVALID_REQUEST
    assert beat(cluster, 0, *names[:-1]).error_code == ErrorCode.NONE
