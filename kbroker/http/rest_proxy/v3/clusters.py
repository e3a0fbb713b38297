"""Clusters, of which there is one, and its brokers with the replicas they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.http.answers import json_answer
from kbroker.http.cluster import client_of
from kbroker.http.endpoint import INTEGER, Endpoint
from kbroker.http.rest_proxy.errors import in_confluents_form
from kbroker.http.rest_proxy.v3.documents import (
    LINK,
    Document,
    Place,
    list_answer,
    list_schema,
    resource_schema,
)
from kbroker.http.rest_proxy.v3.endpoints import endpoint
from kbroker.http.rest_proxy.v3.partitions import REPLICA, replica_document
from kbroker.http.turns import in_turns
from kbroker.operations.cluster import describe_cluster, describe_node
from kbroker.operations.topic_descriptions import EVERY_TOPIC, list_topics

if TYPE_CHECKING:
    from kbroker.cluster.interface import Node
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest


async def list_clusters(request: HttpRequest) -> Response:
    place = Place(request)
    return list_answer(
        "KafkaClusterList", f"{request.base_url}/v3/clusters", [place], lambda _: _cluster(request)
    )


async def get_cluster(request: HttpRequest) -> Response:
    return json_answer(_cluster(request))


async def list_brokers(request: HttpRequest) -> Response:
    place = Place(request)
    nodes = describe_cluster(request.resources, client_of(request)).nodes
    return list_answer("KafkaBrokerList", place.url("brokers"), nodes, lambda node: _broker(place, node))


async def get_broker(request: HttpRequest) -> Response:
    return json_answer(_broker(Place(request), broker_of(request)))


async def list_replicas(request: HttpRequest) -> Response:
    """Of all partitions that a broker has."""
    place, node = Place(request), broker_of(request)
    url = place.url("brokers", node.node_id, "partition-replicas")
    cluster = request.broker.cluster

    page = await in_turns(request, list_topics(request.resources, limit=EVERY_TOPIC))
    held = (
        (topic, partition)
        for topic in page.topics
        for partition in range(topic.partitions)
        if node.node_id in cluster.replicas(topic, partition)
    )
    return list_answer(
        "KafkaReplicaList",
        url,
        held,
        lambda each: replica_document(request, place, each[0], each[1], node.node_id),
    )


def broker_of(request: HttpRequest) -> Node:
    """The one that the path names."""
    return describe_node(request.resources, request.path_int("broker_id"), client_of(request))


def _cluster(request: HttpRequest) -> Document:
    place = Place(request)
    cluster = describe_cluster(request.resources, client_of(request))
    return place.resource(
        "KafkaCluster",
        (),
        "",
        {
            "controller": place.link("brokers", cluster.controller_id),
            "acls": place.link("acls"),
            "brokers": place.link("brokers"),
            "broker_configs": place.link("broker-configs"),
            "consumer_groups": place.link("consumer-groups"),
            "topics": place.link("topics"),
            "partition_reassignments": place.link("topics", "-", "partitions", "-", "reassignment"),
        },
    )


def _broker(place: Place, node: Node) -> Document:
    path = ("brokers", node.node_id)
    return place.resource(
        "KafkaBroker",
        path,
        f"broker={node.node_id}",
        {
            "broker_id": node.node_id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "configs": place.link(*path, "configs"),
            "partition_replicas": place.link(*path, "partition-replicas"),
        },
    )


_CLUSTER = resource_schema(
    "KafkaCluster",
    controller=LINK,
    acls=LINK,
    brokers=LINK,
    broker_configs=LINK,
    consumer_groups=LINK,
    topics=LINK,
    partition_reassignments=LINK,
)
_BROKER = resource_schema(
    "KafkaBroker",
    broker_id=INTEGER,
    host={"type": ["string", "null"]},
    port={"type": ["integer", "null"]},
    rack={"type": ["string", "null"]},
    configs=LINK,
    partition_replicas=LINK,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/clusters",
        in_confluents_form(list_clusters),
        "List the clusters: this one.",
        answers=endpoint(
            "GET", "", get_cluster, "", answers={200: list_schema("KafkaClusterList", _CLUSTER)}
        ).answers,
        tag="Confluent REST Proxy v3",
    ),
    endpoint("GET", "", get_cluster, "Get the cluster.", answers={200: _CLUSTER}),
    endpoint(
        "GET",
        "/brokers",
        list_brokers,
        "List the brokers.",
        answers={200: list_schema("KafkaBrokerList", _BROKER)},
    ),
    endpoint("GET", "/brokers/{broker_id}", get_broker, "Get a broker.", answers={200: _BROKER}),
    endpoint(
        "GET",
        "/brokers/{broker_id}/partition-replicas",
        list_replicas,
        "List the replicas on a broker.",
        answers={200: list_schema("KafkaReplicaList", REPLICA)},
    ),
)
