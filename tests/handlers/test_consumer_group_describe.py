from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

NO_OPERATIONS = -(2**31)


@pytest.fixture
def topic_id(cluster) -> bytes:
    return cluster.create("t", partitions=2).topic_id


def join(cluster, member_id: str, **fields) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
        **fields,
    )
    assert cluster.send(request, 1).error_code == ErrorCode.NONE


def describe(cluster, *group_ids: str, version: int = 1, **fields) -> list[DescribedGroup]:
    return cluster.send(ConsumerGroupDescribeRequest(group_ids=list(group_ids), **fields), version).groups


def test_a_group_is_described_with_members_epochs_and_assignments(cluster, topic_id):
    join(cluster, "m", instance_id="i", rack_id="r", server_assignor="range")
    assignment = Assignment([TopicPartitions(topic_id, "t", [0, 1])])
    assert describe(cluster, "g") == [
        DescribedGroup(
            group_id="g",
            group_state="Stable",
            group_epoch=2,
            assignment_epoch=2,
            assignor_name="range",
            members=[
                Member(
                    member_id="m",
                    instance_id="i",
                    rack_id="r",
                    member_epoch=2,
                    client_id="test",
                    client_host="/127.0.0.1",
                    subscribed_topic_names=["t"],
                    subscribed_topic_regex="",
                    assignment=assignment,
                    target_assignment=assignment,
                    member_type=1,
                )
            ],
        )
    ]


def test_partitions_that_a_member_has_not_given_up_yet_are_its_own(cluster, topic_id):
    join(cluster, "m")
    cluster.now_ms += 1_000
    join(cluster, "n")
    cluster.send(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2), 1)
    (group,) = describe(cluster, "g")
    assert (group.group_state, group.assignor_name) == ("Reconciling", "uniform")
    old, new = group.members
    assert old.assignment.topic_partitions[0].partitions == [0, 1]
    assert old.target_assignment.topic_partitions[0].partitions == [0]
    assert new.assignment.topic_partitions == []


def test_version_0_does_not_say_which_protocol_a_member_uses(cluster, topic_id):
    join(cluster, "m")
    assert describe(cluster, "g", version=0)[0].members[0].member_type == -1


def test_unknown_groups_have_errors_of_their_own(cluster, topic_id):
    join(cluster, "m")
    empty, unknown, known = describe(cluster, "", "other", "g")
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID
    assert (unknown.error_code, unknown.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group other not found.",
    )
    assert known.error_code == ErrorCode.NONE


def test_what_a_client_may_do_is_said_when_asked(cluster, topic_id):
    join(cluster, "m")
    assert describe(cluster, "g")[0].authorized_operations == NO_OPERATIONS
    asked, unknown = describe(cluster, "g", "other", include_authorized_operations=True)
    assert asked.authorized_operations > 0
    assert unknown.authorized_operations == NO_OPERATIONS
