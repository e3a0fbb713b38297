"""DescribeCluster 0–2: the cluster's id and its brokers (KIP-700): this one, which is its own controller.

Version 1 adds the kind of endpoint that is asked about (KIP-919); there is no controller endpoint here.
Version 2 can include fenced brokers (KIP-1073); there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.operations.cluster import describe_cluster
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_BROKERS, _CONTROLLERS = 1, 2

_NOT_ASKED = -(1 << 31)


def handle(
    broker: Broker, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="This is a broker's endpoint, not a controller's.",
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"There is no endpoint type {request.endpoint_type}.",
        )
    resources = broker.resources(context)
    asked = request.include_cluster_authorized_operations
    cluster = describe_cluster(resources, context)
    return DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[DescribeClusterBroker(*node) for node in cluster.nodes],
        cluster_authorized_operations=resources.cluster_operations() if asked else _NOT_ASKED,
    )
