"""The cluster and its brokers, as Kafka clients find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.http.answers import json_answer
from kbroker.http.endpoint import INTEGER, STRING, Endpoint, Schema, json_answer_of
from kbroker.operations.cluster import describe_cluster, describe_log_directory, describe_node
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.cluster.interface import Connected, Node
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest


def client_of(request: HttpRequest) -> Connected:
    """How this client would reach brokers by Kafka's protocol: on the host that it reached by HTTP."""
    return request.broker.cluster.by_first_listener(request.scope["server"][0])


def node_document(node: Node) -> dict[str, Any]:
    return {"id": node.node_id, "host": node.host, "port": node.port, "rack": node.rack}


async def describe(request: HttpRequest) -> Response:
    cluster = describe_cluster(request.resources, client_of(request))
    return json_answer(
        {
            "clusterId": cluster.cluster_id,
            "controllerId": cluster.controller_id,
            "brokers": [node_document(node) for node in cluster.nodes],
        }
    )


async def list_brokers(request: HttpRequest) -> Response:
    nodes = describe_cluster(request.resources, client_of(request)).nodes
    return json_answer({"brokers": [node_document(node) for node in nodes]})


async def describe_broker(request: HttpRequest) -> Response:
    resources = request.resources
    document = node_document(describe_node(resources, request.path_int("broker"), client_of(request)))
    document["logDirectory"] = None
    if resources.may_cluster(AclOperation.DESCRIBE):
        directory = describe_log_directory(resources)
        document["logDirectory"] = {
            "path": directory.path,
            "totalBytes": directory.total_bytes,
            "usableBytes": directory.usable_bytes,
        }
    return json_answer(document)


_NODE_MEMBERS: dict[str, Schema] = {
    "id": INTEGER,
    "host": STRING,
    "port": INTEGER,
    "rack": {"type": ["string", "null"]},
}
NODE: Schema = {"type": "object", "required": [*_NODE_MEMBERS], "properties": _NODE_MEMBERS}
_NODES: Schema = {"type": "array", "items": NODE}
_DIRECTORY: Schema = {
    "type": ["object", "null"],
    "description": "Where its data lies; null for who may not describe the cluster.",
    "properties": {"path": STRING, "totalBytes": INTEGER, "usableBytes": INTEGER},
}
_TAG = "cluster"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/cluster",
        describe,
        "Describe the cluster: its id, its brokers, its controller.",
        answers={
            200: json_answer_of(
                "The cluster.",
                {
                    "type": "object",
                    "required": ["clusterId", "controllerId", "brokers"],
                    "properties": {"clusterId": STRING, "controllerId": INTEGER, "brokers": _NODES},
                },
            )
        },
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/brokers",
        list_brokers,
        "List the brokers, with the addresses for Kafka clients.",
        answers={
            200: json_answer_of(
                "The brokers.",
                {"type": "object", "required": ["brokers"], "properties": {"brokers": _NODES}},
            )
        },
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/brokers/{broker}",
        describe_broker,
        "Describe a broker: its address and its data directory.",
        answers={
            200: json_answer_of(
                "The broker.",
                {
                    "type": "object",
                    "required": [*_NODE_MEMBERS, "logDirectory"],
                    "properties": {**_NODE_MEMBERS, "logDirectory": _DIRECTORY},
                },
            )
        },
        tag=_TAG,
    ),
)
