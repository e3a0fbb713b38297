from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    TaskIds,
)
from tests.handlers.test_streams_group_heartbeat import heartbeat, settled, stateful


@pytest.fixture(autouse=True)
def source(cluster) -> None:
    cluster.create("in", partitions=2)


def describe(cluster, *group_ids: str, **fields: bool) -> list[DescribedGroup]:
    return list(cluster.send(StreamsGroupDescribeRequest(list(group_ids), **fields), 0).groups)


def test_a_group_shows_its_topology_and_its_members_tasks(cluster):
    heartbeat(cluster, topology=stateful())
    settled(cluster, 1)
    (group,) = describe(cluster, "app")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    (subtopology,) = group.topology.subtopologies
    assert subtopology.source_topics == ["in"]
    assert [(topic.name, topic.partitions) for topic in subtopology.state_changelog_topics] == [
        ("app-store-changelog", 2)
    ]
    (member,) = group.members
    assert (member.member_id, member.process_id, member.client_host) == ("m", "p", "/127.0.0.1")
    assert member.assignment.active_tasks == member.target_assignment.active_tasks == [TaskIds("0", [0, 1])]


def test_widths_are_not_shown_before_the_topics_are_right(cluster):
    cluster.create("app-store-changelog", partitions=7)
    heartbeat(cluster, topology=stateful())
    (group,) = describe(cluster, "app")
    assert group.group_state == "NotReady"
    assert group.topology.subtopologies[0].state_changelog_topics[0].partitions == 0


def test_groups_that_are_not_there_are_told_one_by_one(cluster):
    heartbeat(cluster)
    codes = [group.error_code for group in describe(cluster, "", "app", "nobody")]
    assert codes == [ErrorCode.INVALID_GROUP_ID, ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]


def test_what_the_caller_may_do_is_shown_if_asked_for(cluster):
    heartbeat(cluster)
    (group,) = describe(cluster, "app", include_authorized_operations=True)
    assert group.authorized_operations > 0
