from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions


@pytest.fixture(autouse=True)
def topics(cluster):
    cluster.create("a", partitions=2)
    cluster.create("b")


def codes(response):
    return [
        (result.topic, [(p.partition_id, p.error_code) for p in result.partition_result])
        for result in response.replica_election_results
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_no_election_is_needed_where_the_only_replica_leads(cluster, version):
    asked = [TopicPartitions("a", [0, 2, -1]), TopicPartitions("nope", [0]), TopicPartitions("b", [])]
    response = cluster.send(ElectLeadersRequest(topic_partitions=asked), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(response) == [
        ("a", [(0, ErrorCode.ELECTION_NOT_NEEDED), (2, unknown), (-1, unknown)]),
        ("nope", [(0, unknown)]),
        ("b", []),
    ]
    assert response.error_code == ErrorCode.NONE


@pytest.mark.parametrize("election_type", [0, 1])
def test_asked_about_all_partitions_none_is_listed(cluster, election_type):
    response = cluster.send(ElectLeadersRequest(election_type=election_type, topic_partitions=None), 2)
    assert codes(response) == [("a", []), ("b", [])]


def test_an_unknown_election_type_is_an_invalid_request(cluster):
    asked = ElectLeadersRequest(election_type=2, topic_partitions=[TopicPartitions("a", [0])])
    response = cluster.send(asked, 1)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert codes(response) == [("a", [(0, ErrorCode.INVALID_REQUEST)])]
