"""What requests leave in the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages import alter_client_quotas, incremental_alter_configs
from kbroker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from kbroker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kbroker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kbroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from kbroker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kbroker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.messages.offset_delete import OffsetDeleteRequest
from kbroker.requests.admin_changes import _CHANGES
from kbroker.requests.apis import APIS
from tests.handlers.conftest import NOW_MS, Cluster
from tests.handlers.test_resources import NobodyMay

# Those that change what is stored and are no administrators' work, or nothing to look back at.
NOT_TOLD = {
    "Produce",
    "OffsetCommit",
    "JoinGroup",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
    "ShareGroupHeartbeat",
    "ShareFetch",
    "ShareAcknowledge",
    "StreamsGroupHeartbeat",
    "AlterReplicaLogDirs",
    "ElectLeaders",
    "AlterPartitionReassignments",
    "UnregisterBroker",
    "PushTelemetry",
    "ConsumerGroupHeartbeat",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "SaslHandshake",
    "SaslAuthenticate",
}
READS = (
    *("Describe", "List", "Fetch", "Offset", "Metadata", "Find", "ApiVersions", "Get", "Consumer"),
    *("ShareGroupDescribe", "StreamsGroupDescribe"),
)


class Audited(Cluster):
    path: Path

    def told(self) -> list[dict[str, Any]]:
        """Since the last time."""
        if not self.path.exists():
            return []
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        self.path.unlink()
        return lines


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Audited]:
    path = tmp_path / "audit.log"
    cluster = Audited({"node.id": "1", "kbroker.audit.log.file": str(path)})
    cluster.path = path
    yield cluster
    cluster.catalog.close()


def test_every_api_that_changes_something_is_told_or_listed_here() -> None:
    unknown = {
        api.name
        for api in APIS
        if api.key not in _CHANGES and api.name not in NOT_TOLD and not api.name.startswith(READS)
    }
    assert unknown == set()


def test_topics_created_grown_and_deleted(cluster: Audited) -> None:
    configs = [CreatableTopicConfig("retention.ms", "5000")]
    topics = [CreatableTopic("orders", 3, 1, configs=configs), CreatableTopic("bad name", 1, 1)]
    cluster.send(CreateTopicsRequest(topics), 7)
    good, bad = cluster.told()
    assert good | {"time": ""} == {
        "time": "",
        "event": "change",
        "principal": "User:ANONYMOUS",
        "address": "127.0.0.1",
        "api": "CreateTopics",
        "resource_type": "TOPIC",
        "resource": "orders",
        "outcome": "success",
        "details": {"partitions": 3, "configs": {"retention.ms": "5000"}},
    }
    assert (bad["resource"], bad["outcome"]) == ("bad name", "INVALID_TOPIC_EXCEPTION")
    cluster.send(CreatePartitionsRequest([CreatePartitionsTopic("orders", 5, None)]), 3)
    cluster.send(DeleteTopicsRequest(topic_names=["orders"]), 4)
    assert [(line["api"], line["resource"], line["outcome"]) for line in cluster.told()] == [
        ("CreatePartitions", "orders", "success"),
        ("DeleteTopics", "orders", "success"),
    ]


def test_what_is_only_validated_is_not_told(cluster: Audited) -> None:
    cluster.send(CreateTopicsRequest([CreatableTopic("t", 1, 1)], validate_only=True), 7)
    assert cluster.told() == []


def test_of_many_changes_the_first_are_told_and_their_number(cluster: Audited) -> None:
    names = [f"no-such-{number}" for number in range(1500)]
    cluster.send(DeleteTopicsRequest(topic_names=names), 4)
    told = cluster.told()
    assert len(told) == 1001
    assert told[-1]["details"] == {"more": 500}


def test_a_topic_that_a_look_created_is_told(cluster: Audited) -> None:
    cluster.send(MetadataRequest([MetadataRequestTopic(name="new")]), 9)
    (line,) = cluster.told()
    assert (line["api"], line["resource"], line["outcome"]) == ("Metadata", "new", "success")


def test_altered_configs_are_told_without_secrets(cluster: Audited) -> None:
    cluster.create("t")
    configs = [
        incremental_alter_configs.AlterableConfig("ssl.keystore.password", 0, "s3cret"),
        incremental_alter_configs.AlterableConfig("listener.name.internal.ssl.key.password", 0, "s3cret"),
        incremental_alter_configs.AlterableConfig("my.own.secret", 0, "s3cret"),
        incremental_alter_configs.AlterableConfig("log.retention.ms", 0, "1000"),
    ]
    resource = incremental_alter_configs.AlterConfigsResource(4, "", configs)
    cluster.send(IncrementalAlterConfigsRequest([resource]), 1)
    assert "s3cret" not in cluster.path.read_text()
    (line,) = cluster.told()
    assert line["resource_type"] == "BROKER"
    assert [config["value"] for config in line["details"]["configs"]] == ["(hidden)"] * 3 + ["1000"]


def test_groups_offsets_records_and_quotas(cluster: Audited) -> None:
    cluster.create("t")
    cluster.produce("t", NOW_MS)
    cluster.send(DeleteGroupsRequest(["nobody"]), 2)
    cluster.send(OffsetDeleteRequest("nobody"), 0)
    cluster.send(DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 1)])]), 2)
    entry = alter_client_quotas.RequestEntryData(
        [alter_client_quotas.EntityData("user", "alice")],
        [alter_client_quotas.OpData("producer_byte_rate", 5)],
    )
    cluster.send(AlterClientQuotasRequest([entry]), 1)
    told = [(line["api"], line["resource"], line["outcome"], line.get("details")) for line in cluster.told()]
    assert told == [
        ("DeleteGroups", "nobody", "GROUP_ID_NOT_FOUND", None),
        ("OffsetDelete", "nobody", "GROUP_ID_NOT_FOUND", None),
        ("DeleteRecords", "t", "success", {"partition": 0, "low_watermark": 1}),
        ("AlterClientQuotas", "user alice", "success", {"producer_byte_rate": 5.0}),
    ]


def test_offsets_of_share_groups(cluster: Audited) -> None:
    cluster.create("t")
    start = AlterShareGroupOffsetsRequestPartition(0, 7)
    topic = AlterShareGroupOffsetsRequestTopic("t", [start])
    cluster.send(AlterShareGroupOffsetsRequest("g", [topic]), 0)
    deleted = DeleteShareGroupOffsetsRequestTopic("t")
    cluster.send(DeleteShareGroupOffsetsRequest("g", [deleted]), 0)
    cluster.send(DeleteShareGroupOffsetsRequest("nobody", [deleted]), 0)
    told = [(line["api"], line["resource"], line["outcome"], line.get("details")) for line in cluster.told()]
    assert told == [
        ("AlterShareGroupOffsets", "g", "success", {"topic": "t", "partition": 0, "offset": 7}),
        ("DeleteShareGroupOffsets", "g", "success", {"topic": "t"}),
        ("DeleteShareGroupOffsets", "nobody", "GROUP_ID_NOT_FOUND", None),
    ]


def test_a_refusal_is_told(cluster: Audited) -> None:
    cluster.create("t")
    cluster.broker.authorizer = NobodyMay()
    for _ in range(5):
        cluster.send(DeleteTopicsRequest(topic_names=["t"]), 4)
    refusals = [line for line in cluster.told() if line["event"] == "refusal"]
    assert [line | {"time": ""} for line in refusals] == [
        {
            "time": "",
            "event": "refusal",
            "principal": "User:ANONYMOUS",
            "address": "127.0.0.1",
            "api": "DeleteTopics",
            "operation": "DESCRIBE",  # who may not see a topic is asked no more
            "resource_type": "TOPIC",
            "resource": "t",
        }
    ]


def test_a_request_that_only_reads_is_not_told(cluster: Audited) -> None:
    cluster.create("t")
    answer = cluster.send(MetadataRequest([MetadataRequestTopic(name="t")]), 9)
    assert answer.topics[0].error_code == ErrorCode.NONE
    assert cluster.told() == []
