"""The same requests to kbroker and to Apache Kafka 4.3.1: offsets, records, directories, cluster, features.

Everything in the answers is compared, at several versions, except ids, hosts, the metadata log's
offsets, times, and the wording of error messages (whether there is one is compared). Kafka answers
partitions in no particular order, so lists are compared as sets.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.harness.broker import KBrokerProcess
from compat.harness.connection import Connection, ConnectionClosed
from compat.harness.kafka import RealKafka
from compat.harness.waiting import eventually
from kbroker.protocol.record_codec import Record
from kbroker.protocol.records import build_batch

Values = dict[str, Any]

NODE_ID = 1
T = int(time.time() * 1000) - 100_000  # recent, so that retention leaves the records alone
DIFFERS = frozenset(
    ("ClusterId", "Host", "Port", "LogDir", "TotalBytes", "UsableBytes", "HighWatermark", "LogEndOffset")
)
ITS_OWN = {  # what DescribeQuorum says of the metadata log, which kbroker does not have
    "DescribeQuorum": frozenset(("LeaderEpoch", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Name")),
}


class Brokers:
    """A connection to each broker, and topics of the same names and contents on both."""

    def __init__(self, kbroker: str, apache: str) -> None:
        self._bootstraps = (kbroker, apache)
        self._connections: dict[str, Connection] = {}

    def ask(self, api: str, version: int, values: Values) -> tuple[Any, Any]:
        kbroker, apache = (self._ask(each, api, version, values) for each in self._bootstraps)
        return kbroker, apache

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _ask(self, bootstrap: str, api: str, version: int, values: Values) -> Any:
        if bootstrap not in self._connections:
            self._connections[bootstrap] = Connection(bootstrap)
        try:
            return self._connections[bootstrap].ask(api, version, values)
        except ConnectionClosed:
            self._connections.pop(bootstrap).close()
            return "closed"


@pytest.fixture(scope="module")
def brokers(kbroker_server: KBrokerProcess, apache_kafka_server: RealKafka) -> Iterator[Brokers]:
    brokers = Brokers(kbroker_server.bootstrap, apache_kafka_server.bootstrap)
    yield brokers
    brokers.close()


def normal(answer: Any, ignored: frozenset[str]) -> Any:
    if isinstance(answer, dict):
        return {
            name: bool(value) if name == "ErrorMessage" else normal(value, ignored)
            for name, value in answer.items()
            if name not in ignored
        }
    if isinstance(answer, list):
        parts = [normal(part, ignored) for part in answer]
        return sorted(parts, key=lambda part: json.dumps(part, sort_keys=True, default=repr))
    return answer


@pytest.fixture(scope="module")
def same(brokers: Brokers) -> Callable[..., Any]:
    """Asks both, fails if the answers differ, returns Kafka's."""

    def same(api: str, version: int, **values: Any) -> Any:
        ours, theirs = brokers.ask(api, version, values)
        ignored = DIFFERS | ITS_OWN.get(api, frozenset())
        assert normal(ours, ignored) == normal(theirs, ignored), f"{api} v{version} {values}"
        return theirs

    return same


@pytest.fixture(scope="module")
def create(brokers: Brokers, unique: Callable[[str], str]) -> Callable[..., str]:
    def create(partitions: int = 1, **configs: str) -> str:
        name = unique("cluster")
        asked = {
            "Name": name,
            "NumPartitions": partitions,
            "ReplicationFactor": 1,
            "Configs": [{"Name": n.replace("_", "."), "Value": v} for n, v in configs.items()],
        }
        for answer in brokers.ask("CreateTopics", 5, {"Topics": [asked], "timeoutMs": 30_000}):
            assert answer["Topics"][0]["ErrorCode"] == 0
        wait_for_leaders(brokers, name, partitions)
        return name

    return create


def wait_for_leaders(brokers: Brokers, topic: str, partitions: int) -> None:
    asked = [{"PartitionIndex": index, "Timestamp": -1} for index in range(partitions)]
    values = {"ReplicaId": -1, "Topics": [{"Name": topic, "Partitions": asked}]}

    def led(answers: tuple[Any, Any]) -> bool:
        return not any(part["ErrorCode"] for answer in answers for part in answer["Topics"][0]["Partitions"])

    eventually(lambda: brokers.ask("ListOffsets", 11, values), led)


def produce(brokers: Brokers, topic: str, *timestamps: int, partition: int = 0, **batch: int) -> None:
    records = build_batch([Record(timestamp, b"key", b"value") for timestamp in timestamps], **batch)
    data = {"Name": topic, "PartitionData": [{"Index": partition, "Records": records}]}
    for answer in brokers.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 10_000, "TopicData": [data]}):
        assert answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0


@pytest.fixture(scope="module")
def written(brokers: Brokers, create: Callable[..., str]) -> str:
    """Partition 0 has seven records in four batches and starts at 2; partition 1 is empty."""
    topic = create(partitions=2)
    for timestamps in ((T, T + 5, T + 2), (T + 9, T + 3), (T + 9,), (T + 4,)):
        produce(brokers, topic, *timestamps)
    partition = {"PartitionIndex": 0, "Offset": 2}
    brokers.ask(
        "DeleteRecords", 2, {"Topics": [{"Name": topic, "Partitions": [partition]}], "TimeoutMs": 5000}
    )
    return topic


# ListOffsets


def list_offsets(topic: str, *partitions: Values, **more: Any) -> Values:
    return {"ReplicaId": -1, "Topics": [{"Name": topic, "Partitions": list(partitions)}], **more}


SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -100)
BY_TIME = (0, T - 1, T, T + 1, T + 3, T + 5, T + 6, T + 9, T + 10, T * 10)


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets_of_written_and_empty_partitions(same, written: str, version: int) -> None:
    for timestamp in SPECIAL + BY_TIME:
        for index in (0, 1):
            same(
                "ListOffsets",
                version,
                **list_offsets(written, {"PartitionIndex": index, "Timestamp": timestamp}),
            )


@pytest.mark.parametrize("version", [2, 5, 11])
@pytest.mark.parametrize("isolation", [0, 1, 2, -1])
@pytest.mark.parametrize("replica", [-1, -2, 1, 7])
def test_list_offsets_by_isolation_level_and_replica(
    same, written: str, version: int, isolation: int, replica: int
) -> None:
    for timestamp in (-1, -2, T + 3):
        partition = {"PartitionIndex": 0, "Timestamp": timestamp}
        same(
            "ListOffsets",
            version,
            **list_offsets(written, partition, IsolationLevel=isolation, ReplicaId=replica),
        )


@pytest.mark.parametrize("epoch", [-5, -2, -1, 0, 1, 5])
@pytest.mark.parametrize("version", [4, 11])
def test_list_offsets_with_a_leader_epoch(same, written: str, version: int, epoch: int) -> None:
    partition = {"PartitionIndex": 0, "Timestamp": -1, "CurrentLeaderEpoch": epoch}
    same("ListOffsets", version, **list_offsets(written, partition))


@pytest.mark.parametrize("version", [1, 11])
def test_list_offsets_of_what_does_not_exist(same, written: str, version: int) -> None:
    for topic, index in (("no-such-topic", 0), (written, 2), (written, -1), ("", 0), ("no name", 0)):
        same("ListOffsets", version, **list_offsets(topic, {"PartitionIndex": index, "Timestamp": -1}))
    same("ListOffsets", version, ReplicaId=-1, Topics=[])
    same("ListOffsets", version, **list_offsets(written))


def test_list_offsets_of_partitions_named_twice(same, written: str) -> None:
    first, second = {"PartitionIndex": 0, "Timestamp": -1}, {"PartitionIndex": 1, "Timestamp": -2}
    same("ListOffsets", 11, **list_offsets(written, first, second, first))
    topics = [{"Name": written, "Partitions": [first, second]}, {"Name": written, "Partitions": [second]}]
    same("ListOffsets", 11, ReplicaId=-1, Topics=topics)


# OffsetForLeaderEpoch


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("current", [-1, 0, 1, -7])
def test_offset_for_leader_epoch(same, written: str, version: int, current: int) -> None:
    for topic, index in ((written, 0), (written, 1), (written, 2), ("no-such-topic", 0)):
        for epoch in (-1, 0, 1, 9):
            partition = {"Partition": index, "CurrentLeaderEpoch": current, "LeaderEpoch": epoch}
            values = {"Topics": [{"Topic": topic, "Partitions": [partition, partition]}]}
            for replica in (
                ({"ReplicaId": -1}, {"ReplicaId": -2}, {"ReplicaId": 1}) if version >= 3 else ({},)
            ):
                same("OffsetForLeaderEpoch", version, **replica, **values)


# DeleteRecords


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("policy", ["delete", "compact", "compact,delete"])
def test_delete_records(
    same, brokers: Brokers, create: Callable[..., str], version: int, policy: str
) -> None:
    topic = create(cleanup_policy=policy)
    produce(brokers, topic, T, T, T, T)
    for offset in (0, 2, 1, 5, -2, -100, 3, -1, 4, 1 << 40):
        partitions = [{"PartitionIndex": 0, "Offset": offset}]
        same("DeleteRecords", version, Topics=[{"Name": topic, "Partitions": partitions}], TimeoutMs=5000)
        same("ListOffsets", 11, **list_offsets(topic, {"PartitionIndex": 0, "Timestamp": -2}))
    same(
        "OffsetForLeaderEpoch",
        4,
        Topics=[{"Topic": topic, "Partitions": [{"Partition": 0, "LeaderEpoch": 0}]}],
    )


def test_delete_records_of_what_does_not_exist_or_is_named_twice(
    same, brokers: Brokers, create: Callable[..., str]
) -> None:
    topic = create(partitions=2)
    produce(brokers, topic, T, T, T, T)
    for name, index in (("no-such-topic", 0), (topic, 7), (topic, -1), ("no name", 0)):
        partitions = [{"PartitionIndex": index, "Offset": 0}]
        same("DeleteRecords", 2, Topics=[{"Name": name, "Partitions": partitions}], TimeoutMs=5000)
    offsets = [{"PartitionIndex": 0, "Offset": offset} for offset in (3, 2)]
    same("DeleteRecords", 2, Topics=[{"Name": topic, "Partitions": offsets}], TimeoutMs=5000)
    same("DeleteRecords", 2, Topics=[], TimeoutMs=5000)


# DescribeLogDirs, DescribeCluster, DescribeQuorum


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_describe_log_dirs(same, written: str, version: int) -> None:
    answer = same("DescribeLogDirs", version, Topics=[{"Topic": written, "Partitions": [0, 1, 2, 0]}])
    sizes = [partition["PartitionSize"] for partition in answer["Results"][0]["Topics"][0]["Partitions"]]
    assert sorted(sizes)[0] == 0 < sorted(sizes)[1]
    same("DescribeLogDirs", version, Topics=[])
    topics = [{"Topic": "no-such-topic", "Partitions": [0]}, {"Topic": written, "Partitions": []}]
    same("DescribeLogDirs", version, Topics=topics)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_cluster(same, version: int) -> None:
    for asked in (False, True):
        same("DescribeCluster", version, IncludeClusterAuthorizedOperations=asked)
    if version >= 1:
        for endpoint_type in (0, 1, 2, 3, -1):
            same("DescribeCluster", version, EndpointType=endpoint_type)
    if version >= 2:
        same("DescribeCluster", version, IncludeFencedBrokers=True)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_quorum(same, written: str, version: int) -> None:
    metadata = "__cluster_metadata"
    for asked in (
        [],
        [(metadata, [0])],
        [(metadata, [1])],
        [(metadata, [0, 1])],
        [(metadata, [0, 0])],
        [(metadata, [])],
        [(written, [0])],
        [(metadata, [0]), (written, [0])],
    ):
        topics = [
            {"TopicName": name, "Partitions": [{"PartitionIndex": index} for index in indexes]}
            for name, indexes in asked
        ]
        same("DescribeQuorum", version, Topics=topics)


# leaders and replicas


@pytest.mark.parametrize("version", [0, 1, 2])
def test_elect_leaders(same, written: str, version: int) -> None:
    asked = [
        {"Topic": written, "Partitions": [0, 1, 5, -1, 0]},
        {"Topic": "no-such-topic", "Partitions": [0]},
        {"Topic": "", "Partitions": [0]},
        {"Topic": written, "Partitions": []},
    ]
    for election_type in (0, 1, 2, -1) if version else (0,):
        kind = {"ElectionType": election_type} if version else {}
        same("ElectLeaders", version, TopicPartitions=asked, TimeoutMs=30_000, **kind)
        same("ElectLeaders", version, TopicPartitions=[], TimeoutMs=30_000, **kind)


def test_elect_leaders_of_all_partitions(brokers: Brokers, written: str) -> None:
    """Other tests' topics exist on one broker only; but no partition of any topic is in the answer."""
    for answer in brokers.ask("ElectLeaders", 2, {"TopicPartitions": None, "TimeoutMs": 30_000}):
        results = {result["Topic"]: result["PartitionResult"] for result in answer["ReplicaElectionResults"]}
        assert results[written] == []
        assert not any(results.values())


@pytest.mark.parametrize("version", [0, 1])
def test_alter_partition_reassignments(same, written: str, version: int) -> None:
    for replicas in ([NODE_ID], None, [], [NODE_ID, NODE_ID], [2], [NODE_ID, 2], [-1], [3, 2]):
        for topic, index in ((written, 0), (written, 9), (written, -1), ("no-such-topic", 0)):
            partitions = [{"PartitionIndex": index, "Replicas": replicas}]
            topics = [{"Name": topic, "Partitions": partitions}]
            same("AlterPartitionReassignments", version, Topics=topics, TimeoutMs=30_000)
    same("AlterPartitionReassignments", version, Topics=[], TimeoutMs=30_000)
    if version >= 1:
        topics = [{"Name": written, "Partitions": [{"PartitionIndex": 0, "Replicas": [NODE_ID]}]}]
        same("AlterPartitionReassignments", version, Topics=topics, AllowReplicationFactorChange=False)


def test_list_partition_reassignments(same, written: str) -> None:
    same("ListPartitionReassignments", 0, Topics=None)
    topics = [
        {"Name": written, "PartitionIndexes": [0, 9]},
        {"Name": "no-such-topic", "PartitionIndexes": [0]},
    ]
    same("ListPartitionReassignments", 0, Topics=topics)


# DescribeProducers


def test_describe_producers(same, brokers: Brokers, create: Callable[..., str]) -> None:
    topic = create(partitions=2)
    produce(brokers, topic, T, T)
    for producer_id, epoch in ((1_000_001, 0), (1_000_002, 5)):
        produce(brokers, topic, T + 1, T, producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
        produce(brokers, topic, T + 2, producer_id=producer_id, producer_epoch=epoch, base_sequence=2)
    answer = same("DescribeProducers", 0, Topics=[{"Name": topic, "PartitionIndexes": [0, 1, 9, -1, 0]}])
    assert any(len(part["ActiveProducers"]) == 2 for part in answer["Topics"][0]["Partitions"])
    for name in ("no-such-topic", "no name", "", "..", "x" * 250):
        same("DescribeProducers", 0, Topics=[{"Name": name, "PartitionIndexes": [0]}])
    same("DescribeProducers", 0, Topics=[])


# UpdateFeatures

FEATURE_UPDATES = [
    *(("group.version", level, kind) for level in (-1, 0, 1, 2) for kind in (0, 1, 2, 3, 9)),
    *(("metadata.version", level, kind) for level in (0, 6, 7, 29, 30, 31) for kind in (1, 2, 3)),
    *(("no.such.feature", level, 1) for level in (0, 1)),
]


@pytest.mark.parametrize("version", [1, 2])
def test_update_features_is_validated_alike(same, version: int) -> None:
    for name, level, kind in FEATURE_UPDATES:
        update = {"Feature": name, "MaxVersionLevel": level, "UpgradeType": kind}
        same("UpdateFeatures", version, FeatureUpdates=[update], ValidateOnly=True)
    mixed = [
        {"Feature": "group.version", "MaxVersionLevel": 0, "UpgradeType": 2},
        {"Feature": "group.version", "MaxVersionLevel": 2, "UpgradeType": 1},
    ]
    same("UpdateFeatures", version, FeatureUpdates=mixed, ValidateOnly=True)
    same("UpdateFeatures", version, FeatureUpdates=[], ValidateOnly=True)


def test_update_features_at_version_0_only_upgrades(same) -> None:
    for level in (0, 1, 2):
        for allowed in (False, True) if level else (True,):
            update = {"Feature": "group.version", "MaxVersionLevel": level, "AllowDowngrade": allowed}
            same("UpdateFeatures", 0, FeatureUpdates=[update])


def test_a_level_is_lowered_and_raised_again(same, brokers: Brokers) -> None:
    def finalized() -> list[int | None]:
        answers = brokers.ask(
            "ApiVersions", 4, {"ClientSoftwareName": "compat", "ClientSoftwareVersion": "1"}
        )
        levels = ({f["Name"]: f["MaxVersionLevel"] for f in a["FinalizedFeatures"]} for a in answers)
        return [of_broker.get("eligible.leader.replicas.version") for of_broker in levels]

    def wait_for(level: int | None) -> None:
        eventually(finalized, lambda levels: levels == [level, level])

    update = {"Feature": "eligible.leader.replicas.version"}
    wait_for(1)
    same("UpdateFeatures", 2, FeatureUpdates=[{**update, "MaxVersionLevel": 0, "UpgradeType": 2}])
    wait_for(None)
    same("UpdateFeatures", 2, FeatureUpdates=[{**update, "MaxVersionLevel": 1, "UpgradeType": 2}])
    same("UpdateFeatures", 1, FeatureUpdates=[{**update, "MaxVersionLevel": 1, "UpgradeType": 1}])
    wait_for(1)
