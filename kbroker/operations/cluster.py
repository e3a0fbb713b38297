"""The cluster as clients are told of it: its id, its brokers, who controls it, where data lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.cluster.interface import Connected, Node
    from kbroker.requests.resources import Resources


class ClusterDescription(NamedTuple):
    cluster_id: str
    controller_id: int
    nodes: Sequence[Node]


class LogDirectory(NamedTuple):
    path: str
    total_bytes: int
    """Of the volume; -1: not known."""
    usable_bytes: int


def describe_cluster(resources: Resources, client: Connected) -> ClusterDescription:
    """For everybody: clients need it to find their way."""
    cluster = resources.broker.cluster
    return ClusterDescription(cluster.cluster_id, cluster.controller_id(), cluster.nodes(client))


def describe_node(resources: Resources, node_id: int, client: Connected) -> Node:
    for node in resources.broker.cluster.nodes(client):
        if node.node_id == node_id:
            return node
    raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"There is no broker {node_id}.")


def describe_log_directory(resources: Resources) -> LogDirectory:
    """Of this broker, for who may describe the cluster."""
    directory = resources.log_directory(AclOperation.DESCRIBE)
    return LogDirectory(directory.path, directory.total_bytes(), directory.usable_bytes())
