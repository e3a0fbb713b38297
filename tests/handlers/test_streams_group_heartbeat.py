from __future__ import annotations

from typing import Any

import pytest

from kbroker.coordinators.groups.streams.configured_topology import StatusCode
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kbroker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


@pytest.fixture(autouse=True)
def source(cluster) -> None:
    cluster.create("in", partitions=2)


def stateful(**fields: Any) -> Topology:
    store = TopicInfo("app-store-changelog", 0, 0, [KeyValue("cleanup.policy", "compact")])
    return Topology(0, [Subtopology("0", ["in"], state_changelog_topics=[store], **fields)])


def heartbeat(cluster, member_epoch: int = 0, **fields: Any) -> StreamsGroupHeartbeatResponse:
    fields = {"group_id": "app", "member_id": "m", **fields}
    if member_epoch == 0:
        fields = {
            "rebalance_timeout_ms": 60_000,
            "process_id": "p",
            "topology": Topology(0, [Subtopology("0", ["in"])]),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            **fields,
        }
    return cluster.send(StreamsGroupHeartbeatRequest(member_epoch=member_epoch, **fields), 0)


def settled(cluster, member_epoch: int, **fields: Any) -> StreamsGroupHeartbeatResponse:
    """A heartbeat when nobody is expected to join any more."""
    cluster.now_ms += 1_000
    return heartbeat(cluster, member_epoch, **fields)


def test_a_member_joins_and_gets_its_tasks_a_moment_later(cluster):
    joined = heartbeat(cluster)
    assert (joined.error_code, joined.member_epoch) == (ErrorCode.NONE, 1)
    assert [status.status_code for status in joined.status] == [StatusCode.ASSIGNMENT_DELAYED]
    assert joined.active_tasks == []
    assert 0 < joined.heartbeat_interval_ms < 1_000
    response = settled(cluster, 1)
    assert (response.member_epoch, response.status) == (2, [])
    assert response.active_tasks == [TaskIds("0", [0, 1])]
    assert (response.standby_tasks, response.warmup_tasks) == ([], [])


def test_a_heartbeat_without_news_has_no_tasks(cluster):
    heartbeat(cluster)
    settled(cluster, 1)
    assert heartbeat(cluster, 2).active_tasks is None


def test_internal_topics_are_made_with_the_configs_that_the_topology_names(cluster):
    joined = heartbeat(cluster, topology=stateful())
    assert StatusCode.MISSING_INTERNAL_TOPICS in [status.status_code for status in joined.status]
    topic = cluster.broker.topics.get("app-store-changelog")
    assert (topic.partitions, topic.configs) == (2, {"cleanup.policy": "compact"})
    response = settled(cluster, 1)
    assert (response.status, response.active_tasks) == ([], [TaskIds("0", [0, 1])])


def test_why_an_internal_topic_cannot_be_made_is_told(cluster):
    topology = stateful()
    topology.subtopologies[0].state_changelog_topics[0].topic_configs[0].value = "nonsense"
    status = next(
        each
        for each in heartbeat(cluster, topology=topology).status
        if each.status_code == StatusCode.MISSING_INTERNAL_TOPICS
    )
    assert "app-store-changelog" in status.status_detail
    assert "nonsense" in status.status_detail


def test_a_missing_source_topic_is_told_by_name(cluster):
    topology = Topology(0, [Subtopology("0", ["in", "other"])])
    status = heartbeat(cluster, topology=topology).status[-1]
    assert (status.status_code, "other" in status.status_detail) == (StatusCode.MISSING_SOURCE_TOPICS, True)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": "i"}, ErrorCode.INVALID_REQUEST),
        ({"topology": None}, ErrorCode.INVALID_REQUEST),
        ({"task_offsets": []}, ErrorCode.INVALID_REQUEST),
        (
            {"topology": Topology(0, [Subtopology("0", source_topic_regex=["a"])])},
            ErrorCode.INVALID_REQUEST,
        ),
        (
            {"topology": Topology(0, [Subtopology("0", ["in"]), Subtopology("0", ["in"])])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        (
            {"topology": Topology(0, [Subtopology("0", ["in"], copartition_groups=[CopartitionGroup([1])])])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        (
            {
                "topology": Topology(
                    0, [Subtopology("0", ["in"], copartition_groups=[CopartitionGroup([-1])])]
                )
            },
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        ({"topology": Topology(0, [Subtopology("0")])}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ({"topology": Topology(0, [Subtopology("0", ["a b"])])}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        (
            {"topology": Topology(0, [Subtopology("0", ["__consumer_offsets"])])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
    ],
)
def test_what_does_not_go_is_refused_and_changes_nothing(cluster, fields, code):
    response = heartbeat(cluster, **fields)
    assert response.error_code == code
    assert response.error_message
    assert "app" not in cluster.broker.groups.groups


def test_endpoints_come_with_their_partitions(cluster):
    heartbeat(cluster, user_endpoint=Endpoint("here", 80))
    (found,) = settled(cluster, 1).partitions_by_user_endpoint
    assert found.user_endpoint == Endpoint("here", 80)
    assert [(each.topic, each.partitions) for each in found.active_partitions] == [("in", [0, 1])]


def test_without_the_feature_it_is_refused(cluster):
    update = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("streams.version", 0, False, 2)])
    cluster.send(update, 1)
    assert heartbeat(cluster).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_topology_has_so_many_topics(cluster):
    topology = Topology(0, [Subtopology("0", source_topics=[f"a{number}" for number in range(20_000)])])
    answer = heartbeat(cluster, topology=topology)
    assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
