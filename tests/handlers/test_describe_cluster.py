from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest


@pytest.fixture
def settings():
    return {"node.id": "4", "broker.rack": "shelf"}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_is_this_broker_at_the_address_the_client_used(cluster, version):
    response = cluster.send(DescribeClusterRequest(), version)
    assert response.error_code == ErrorCode.NONE
    assert response.error_message is None
    assert response.cluster_id == cluster.broker.cluster.cluster_id
    assert response.controller_id == 4
    assert response.brokers == [DescribeClusterBroker(4, "127.0.0.1", 19092, "shelf")]


def test_authorized_operations_come_only_when_asked_for(cluster):
    assert cluster.send(DescribeClusterRequest(), 2).cluster_authorized_operations == -(1 << 31)
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert cluster.send(asked, 2).cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_only_brokers_can_be_asked_about(cluster, endpoint_type, code):
    response = cluster.send(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert response.error_code == code
    assert response.error_message
    assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


def test_fenced_brokers_do_not_exist(cluster):
    (broker,) = cluster.send(DescribeClusterRequest(include_fenced_brokers=True), 2).brokers
    assert broker.is_fenced is False
