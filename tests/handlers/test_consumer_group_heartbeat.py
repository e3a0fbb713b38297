from __future__ import annotations

import time
from typing import Any

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

GROUP, SET = 32, 0


@pytest.fixture
def topic_id(cluster) -> bytes:
    return cluster.create("t", partitions=2).topic_id


def heartbeat(
    cluster, member_epoch: int = 0, version: int = 1, **fields: Any
) -> ConsumerGroupHeartbeatResponse:
    fields = {"group_id": "g", "member_id": "m", **fields}
    if member_epoch == 0:
        fields = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **fields,
        }
    return cluster.send(ConsumerGroupHeartbeatRequest(member_epoch=member_epoch, **fields), version)


def test_a_member_joins_and_gets_its_assignment(cluster, topic_id):
    response = heartbeat(cluster)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.member_id, response.member_epoch) == ("m", 2)
    assert response.assignment == Assignment([TopicPartitions(topic_id, [0, 1])])
    assert 0 < response.heartbeat_interval_ms < 1_000


def test_a_heartbeat_without_news_has_no_assignment(cluster, topic_id):
    epoch = heartbeat(cluster).member_epoch
    assert heartbeat(cluster, epoch).assignment is None


def test_what_a_member_owns_is_read_from_the_request(cluster, topic_id):
    heartbeat(cluster)
    cluster.now_ms += 1_000
    heartbeat(cluster, member_id="n")
    kept = heartbeat(cluster, 2).assignment.topic_partitions[0]
    assert heartbeat(cluster, 2, topic_partitions=[kept]).member_epoch == 3


def test_a_calm_group_is_told_the_configured_interval(cluster, topic_id):
    epoch = heartbeat(cluster).member_epoch
    cluster.now_ms += 10_000
    assert heartbeat(cluster, epoch).heartbeat_interval_ms == 5_000


def test_version_0_needs_no_member_id(cluster, topic_id):
    assert heartbeat(cluster, version=0, member_id="").member_id
    response = heartbeat(cluster, member_id="")
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert "MemberId" in (response.error_message or "")


def test_a_regular_expression_comes_with_version_1(cluster, topic_id):
    response = heartbeat(cluster, subscribed_topic_names=None, subscribed_topic_regex="[st]")
    assert response.assignment == Assignment([TopicPartitions(topic_id, [0, 1])])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_epoch": 7}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"member_epoch": 7, "member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_epoch": 7, "group_id": "other"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -5}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"member_id": "n", "instance_id": "i"}, ErrorCode.UNRELEASED_INSTANCE_ID),
        ({"member_epoch": 2, "member_id": "n", "instance_id": "i"}, ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_a_refusal_has_kafkas_code_and_a_message(cluster, topic_id, fields, code):
    heartbeat(cluster)
    heartbeat(cluster, member_id="static", instance_id="i")
    response = heartbeat(cluster, **fields)
    assert response.error_code == code
    assert response.error_message
    assert (response.member_id, response.member_epoch, response.assignment) == (None, 0, None)


def test_the_group_survives_a_restart(cluster, topic_id, settings):
    epoch = heartbeat(cluster).member_epoch
    cluster.broker = cluster.start(settings)
    response = heartbeat(cluster, epoch)
    assert (response.error_code, response.member_epoch) == (ErrorCode.NONE, epoch)


@pytest.mark.parametrize(
    "settings",
    [
        {
            "node.id": "1",
            "group.consumer.min.heartbeat.interval.ms": "50",
            "group.consumer.heartbeat.interval.ms": "60",
            "group.consumer.max.size": "1",
            "group.consumer.assignors": "range",
        }
    ],
)
def test_the_brokers_settings_count(cluster, topic_id):
    assert heartbeat(cluster).heartbeat_interval_ms == 60
    assert heartbeat(cluster, member_id="n").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert heartbeat(cluster, server_assignor="uniform").error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


def test_a_groups_own_configs_count_more(cluster, topic_id):
    configs = [
        AlterableConfig("consumer.heartbeat.interval.ms", SET, "6000"),
        AlterableConfig("consumer.assignment.interval.ms", SET, "15000"),
    ]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP, "g", configs)])
    assert cluster.send(request, 1).responses[0].error_code == ErrorCode.NONE
    epoch = heartbeat(cluster).member_epoch
    cluster.now_ms += 14_999
    assert heartbeat(cluster, epoch).heartbeat_interval_ms == 6_000
    assert heartbeat(cluster, member_id="n").member_epoch == epoch
    cluster.now_ms += 1
    assert heartbeat(cluster, epoch, member_id="n").member_epoch == epoch + 1


def test_a_member_subscribes_to_so_many_topics(cluster, topic_id):
    names = ["t", *(f"missing-{number}" for number in range(20_000))]
    assert heartbeat(cluster, subscribed_topic_names=names).error_code == ErrorCode.INVALID_REQUEST
    assert heartbeat(cluster, subscribed_topic_names=names[:-1]).error_code == ErrorCode.NONE


def test_a_topic_that_is_named_very_often_takes_no_longer_than_others(cluster, topic_id):
    heartbeat(cluster)
    owned = [TopicPartitions(topic_id, [number]) for number in range(100_000)]
    begun = time.process_time()
    assert heartbeat(cluster, 1, topic_partitions=owned).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert time.process_time() - begun < 5  # a tenth of it, mostly
