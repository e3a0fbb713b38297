from __future__ import annotations

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_cluster import DescribeClusterRequest
from kbroker.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.handlers.conftest import Cluster


def test_no_other_broker_is_registered(cluster: Cluster) -> None:
    for broker_id in (0, 2, -1):
        answer = cluster.send(UnregisterBrokerRequest(broker_id), 0)
        assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        assert f"no broker {broker_id}" in answer.error_message


def test_this_one_stays(cluster: Cluster) -> None:
    assert cluster.send(UnregisterBrokerRequest(1), 0).error_code == ErrorCode.NONE
    (node,) = cluster.send(DescribeClusterRequest(), 2).brokers
    assert node.broker_id == 1
