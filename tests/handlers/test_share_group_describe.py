from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    TopicPartitions,
)
from kbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

NO_OPERATIONS = -(2**31)


@pytest.fixture
def topic_id(cluster) -> bytes:
    return cluster.create("t", partitions=2).topic_id


def join(cluster, member_id: str, **fields) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=member_id, subscribed_topic_names=["t"], **fields
    )
    assert cluster.send(request, 1).error_code == ErrorCode.NONE


def describe(cluster, *group_ids: str, **fields) -> list[DescribedGroup]:
    return cluster.send(ShareGroupDescribeRequest(group_ids=list(group_ids), **fields), 1).groups


def test_a_group_is_described_with_members_epochs_and_assignments(cluster, topic_id):
    join(cluster, "m", rack_id="r")
    assert describe(cluster, "g") == [
        DescribedGroup(
            group_id="g",
            group_state="Stable",
            group_epoch=2,
            assignment_epoch=2,
            assignor_name="simple",
            members=[
                Member(
                    member_id="m",
                    rack_id="r",
                    member_epoch=2,
                    client_id="test",
                    client_host="/127.0.0.1",
                    subscribed_topic_names=["t"],
                    assignment=Assignment([TopicPartitions(topic_id, "t", [0, 1])]),
                )
            ],
        )
    ]


def test_groups_that_are_none_are_refused_one_by_one(cluster, topic_id):
    join(cluster, "m")
    cluster.broker.groups.get_or_create_simple("classic", cluster.now_ms)
    described = describe(cluster, "g", "g", "", "no", "classic")
    assert [(group.group_id, group.error_code) for group in described] == [
        ("g", ErrorCode.NONE),
        ("g", ErrorCode.NONE),
        ("", ErrorCode.INVALID_GROUP_ID),
        ("no", ErrorCode.GROUP_ID_NOT_FOUND),
        ("classic", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def test_operations_are_told_to_who_asks(cluster, topic_id):
    join(cluster, "m")
    (plain,) = describe(cluster, "g")
    (asked,) = describe(cluster, "g", include_authorized_operations=True)
    assert plain.authorized_operations == NO_OPERATIONS
    assert asked.authorized_operations > 0
