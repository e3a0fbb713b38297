"""Handlers, operations and code in the process reach what is asked for through `broker.resources` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbroker.catalog.memory import MemoryCatalog
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import alter_configs, incremental_alter_configs, request_type
from kbroker.protocol.messages.alter_configs import AlterConfigsRequest
from kbroker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kbroker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kbroker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from kbroker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kbroker.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.types import Array
from kbroker.requests.apis import APIS, Api
from kbroker.requests.resources import Resources
from kbroker.security.acl_store import AclStore
from kbroker.security.acls import AclOperation, AclResourceType
from kbroker.security.authorizer import Caller
from tests.protocol.sample_messages import full

from .conftest import Cluster

KBROKER = Path(__file__).parents[2] / "kbroker"
BEHIND_RESOURCES = {
    "auto_create",
    "catalog",
    "create_topic",
    "dynamic_configs",
    "find_log",
    "groups",
    "images",
    "log",
    "logs",
    "open_logs",
    "own_resources",
    "producer_ids",
    "share_states",
    "shares",
    "topics",
    "transactions",
}
OF_THEIR_OWN = {  # for the broker, or where its own notes are
    ("reading.py", "logs"),
    ("origins.py", "catalog"),
    ("origins.py", "producer_ids"),
    ("lost_members.py", "groups"),
    ("calls.py", "own_resources"),  # of the code in the process, which is the broker's owner
    ("following.py", "topics"),  # to hear that some have changed
}
REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
FOR_EVERYBODY = {"ApiVersions", "DescribeCluster", "GetTelemetrySubscriptions", "PushTelemetry"}
FOR_EVERYBODY |= {"SaslHandshake", "SaslAuthenticate"}
FOR_WHO_IS_LOGGED_IN = {  # test_create_delegation_token.py and its neighbours
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
}
EMPTY_FOR_STRANGERS = {"ListGroups", "ListTransactions"}


def _reaches(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes of a broker, however the code came by it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if name in ("broker", "_broker"):
                yield node


@pytest.mark.parametrize("room", ["handlers", "operations", "local"])
def test_nothing_is_reached_past_the_resources(room: str) -> None:
    past = [
        f"{path.name}:{node.lineno} .{node.attr}"
        for path in sorted((KBROKER / room).rglob("*.py"))
        for node in _reaches(ast.parse(path.read_text()))
        if node.attr in BEHIND_RESOURCES and (path.name, node.attr) not in OF_THEIR_OWN
    ]
    assert past == []


class NobodyMay:
    """An authorizer that refuses everything, and remembers what it was asked."""

    acls = AclStore(MemoryCatalog(), ())

    def __init__(self) -> None:
        self.asked: list[tuple[str, AclOperation, AclResourceType, str]] = []

    def authorize(
        self, caller: Caller, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> bool:
        self.asked.append((str(caller.principal), operation, resource_type, name))
        return False

    def authorize_by_resource_type(
        self, caller: Caller, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        return False


@pytest.fixture
def authorizer(cluster: Cluster) -> NobodyMay:
    cluster.broker.authorizer = authorizer = NobodyMay()
    return authorizer


def _codes(part: Any) -> Iterator[int]:
    for field in schema_of(type(part)).fields:
        value = getattr(part, field.name)
        if field.name == "error_code":
            yield value
        elif isinstance(field.type, Array) and isinstance(field.type.of, type):
            for entry in value or ():
                yield from _codes(entry)


REQUESTS: dict[str, tuple[Any, int]] = {
    "Produce": (
        ProduceRequest(None, -1, 1000, [TopicProduceData("t", partition_data=[PartitionProduceData(0)])]),
        9,
    ),
    "Fetch": (FetchRequest(topics=[FetchTopic("t", partitions=[FetchPartition()])]), 12),
    "ListOffsets": (
        ListOffsetsRequest(topics=[ListOffsetsTopic("t", [ListOffsetsPartition(timestamp=-1)])]),
        7,
    ),
    "Metadata": (MetadataRequest([MetadataRequestTopic(name="t")]), 9),
    "FindCoordinator": (FindCoordinatorRequest(coordinator_keys=["g"]), 4),
    "CreateTopics": (CreateTopicsRequest([CreatableTopic("t", 1, 1)]), 7),
    "DeleteTopics": (DeleteTopicsRequest([DeleteTopicState("t")]), 6),
    "DescribeConfigs": (DescribeConfigsRequest([DescribeConfigsResource(2, "t")]), 4),
    "AlterConfigs": (AlterConfigsRequest([alter_configs.AlterConfigsResource(2, "t")]), 2),
    "IncrementalAlterConfigs": (
        IncrementalAlterConfigsRequest([incremental_alter_configs.AlterConfigsResource(4, "1")]),
        1,
    ),
    "CreatePartitions": (CreatePartitionsRequest([CreatePartitionsTopic("t", 2)]), 3),
    "DescribeProducers": (DescribeProducersRequest([TopicRequest("t", [0])]), 0),
}
"""Where a request with something in every field makes no sense."""


@pytest.mark.parametrize(
    "api",
    [api for api in APIS if api.name not in FOR_EVERYBODY | FOR_WHO_IS_LOGGED_IN],
    ids=lambda api: api.name,
)
def test_who_may_do_nothing_is_refused_by_every_api(
    cluster: Cluster, authorizer: NobodyMay, api: Api
) -> None:
    request, version = REQUESTS.get(api.name) or (
        full(request_type(api.key), api.max_version),
        api.max_version,
    )
    answer = cluster.send(request, version)
    answer = answer.result() if isinstance(answer, Pending) else answer
    codes = set(_codes(answer)) - {ErrorCode.NONE}
    if api.name not in EMPTY_FOR_STRANGERS:
        assert codes
        assert codes <= REFUSALS
        assert authorizer.asked[0][0] == "User:ANONYMOUS"


def test_what_a_caller_may_do_is_told_in_bits(cluster: Cluster, authorizer: NobodyMay) -> None:
    caller = cluster.session()
    topic = AclResourceType.TOPIC
    assert cluster.broker.resources(caller).authorized_operations(topic, "t") == 0
    assert cluster.broker.own_resources.authorized_operations(topic, "t") == 0b110111111000


def test_a_topic_that_may_not_be_seen_is_not_found(cluster: Cluster, authorizer: NobodyMay) -> None:
    topic = cluster.create("t")
    theirs, own = cluster.broker.resources(cluster.session()), cluster.broker.own_resources
    for key in ("t", topic.topic_id):
        assert own.find_topic(key, AclOperation.DESCRIBE) is topic
        assert theirs.find_topic(key, AclOperation.DESCRIBE) is None
    assert [each.name for each in own.topics(AclOperation.DESCRIBE)] == ["t"]
    assert theirs.topics(AclOperation.DESCRIBE) == []


def test_brokers_reach_everything_if_they_may_act_for_the_cluster(cluster: Cluster) -> None:
    class BrokersMay(NobodyMay):
        def authorize(self, caller: Any, operation: Any, resource_type: Any, name: str) -> bool:
            return operation is AclOperation.CLUSTER_ACTION

    cluster.create("t")
    cluster.broker.authorizer = BrokersMay()
    resources = cluster.broker.resources(cluster.session())
    assert isinstance(resources.as_broker(), Resources)
    assert resources.as_broker().find_topic("t", AclOperation.WRITE) is not None
    assert resources.find_topic("t", AclOperation.WRITE) is None
