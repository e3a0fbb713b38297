"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeLogDirs, DescribeProducers, the cluster's APIs.

Kafka answers topics and partitions in no particular order, so lists are compared as sets. Not compared: sizes
and places of disks, and what DescribeQuorum says of the metadata log, which kbroker does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.differential.recordings import NOW
from compat.harness.brokers import Server
from compat.harness.side import Side
from compat.harness.waiting import eventually
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record

Values = dict[str, Any]
Same = Callable[..., None]

NODE_ID = 1
T = NOW - 100_000  # recent, so that retention leaves the records alone
ITS_OWN = {
    "DescribeLogDirs": frozenset(("LogDir", "TotalBytes", "UsableBytes")),
    "DescribeQuorum": frozenset(
        (
            "HighWatermark",
            "LastCaughtUpTimestamp",
            "LastFetchTimestamp",
            "LeaderEpoch",
            "LogEndOffset",
            "Name",
            "Port",
        )
    ),
}


def unordered(answer: Any, ignored: frozenset[str]) -> Any:
    if isinstance(answer, dict):
        # Kafka has both "" and null for no message.
        return {
            name: unordered(value, ignored) or None if name == "ErrorMessage" else unordered(value, ignored)
            for name, value in answer.items()
            if name not in ignored
        }
    if isinstance(answer, list):
        parts = [unordered(part, ignored) for part in answer]
        return sorted(parts, key=lambda part: json.dumps(part, sort_keys=True, default=repr))
    return answer


@pytest.fixture
def same(pair: Pair) -> Same:
    """Asks both brokers and compares."""

    def same(api: str, version: int, **values: Any) -> None:
        ignored = ITS_OWN.get(api, frozenset())
        pair.same(
            lambda side: unordered(side.ask(api, version, values), ignored), f"{api} v{version} {values}"
        )

    return same


@pytest.fixture
def create(pair: Pair, topic: str) -> Callable[..., str]:
    def create(partitions: int = 1, **configs: str) -> str:
        for side in pair.sides:
            side.create_topic(topic, partitions, **configs)
        return topic

    return create


def produce(sides: Iterable[Side], topic: str, *timestamps: int, **batch: int) -> None:
    records = build_batch([Record(timestamp, b"key", b"value") for timestamp in timestamps], **batch)
    for side in sides:
        assert side.produce(topic, records)["ErrorCode"] == 0


@pytest.fixture(scope="module")
def written(brokers: tuple[Server, ...], unique: Callable[[str], str]) -> str:
    """Partition 0 has seven records in four batches and starts at 2; partition 1 is empty."""
    topic = unique("cluster")
    partitions = [{"PartitionIndex": 0, "Offset": 2}]
    deleted = {"Topics": [{"Name": topic, "Partitions": partitions}], "TimeoutMs": 5000}
    for side in map(Side, brokers):
        side.create_topic(topic, 2)
        for timestamps in ((T, T + 5, T + 2), (T + 9, T + 3), (T + 9,), (T + 4,)):
            produce([side], topic, *timestamps)
        side.raw("DeleteRecords", 2, deleted)
        side.disconnect()
    return topic


# ListOffsets


def list_offsets(topic: str, *partitions: Values, **more: Any) -> Values:
    return {"ReplicaId": -1, "Topics": [{"Name": topic, "Partitions": list(partitions)}], **more}


SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -100)
BY_TIME = (0, T - 1, T, T + 1, T + 3, T + 5, T + 6, T + 9, T + 10, T * 10)


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets_of_written_and_empty_partitions(same: Same, written: str, version: int) -> None:
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
    same: Same, written: str, version: int, isolation: int, replica: int
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
def test_list_offsets_with_a_leader_epoch(same: Same, written: str, version: int, epoch: int) -> None:
    partition = {"PartitionIndex": 0, "Timestamp": -1, "CurrentLeaderEpoch": epoch}
    same("ListOffsets", version, **list_offsets(written, partition))


@pytest.mark.parametrize("version", [1, 11])
def test_list_offsets_of_what_does_not_exist(same: Same, written: str, version: int) -> None:
    for topic, index in (("no-such-topic", 0), (written, 2), (written, -1), ("", 0), ("no name", 0)):
        same("ListOffsets", version, **list_offsets(topic, {"PartitionIndex": index, "Timestamp": -1}))
    same("ListOffsets", version, ReplicaId=-1, Topics=[])
    same("ListOffsets", version, **list_offsets(written))


def test_list_offsets_of_partitions_named_twice(same: Same, written: str) -> None:
    first, second = {"PartitionIndex": 0, "Timestamp": -1}, {"PartitionIndex": 1, "Timestamp": -2}
    same("ListOffsets", 11, **list_offsets(written, first, second, first))
    topics = [{"Name": written, "Partitions": [first, second]}, {"Name": written, "Partitions": [second]}]
    same("ListOffsets", 11, ReplicaId=-1, Topics=topics)


# OffsetForLeaderEpoch


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("current", [-1, 0, 1, -7])
def test_offset_for_leader_epoch(same: Same, written: str, version: int, current: int) -> None:
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
    same: Same, pair: Pair, create: Callable[..., str], version: int, policy: str
) -> None:
    topic = create(cleanup_policy=policy)
    produce(pair.sides, topic, T, T, T, T)
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
    same: Same, pair: Pair, create: Callable[..., str]
) -> None:
    topic = create(partitions=2)
    produce(pair.sides, topic, T, T, T, T)
    for name, index in (("no-such-topic", 0), (topic, 7), (topic, -1), ("no name", 0)):
        partitions = [{"PartitionIndex": index, "Offset": 0}]
        same("DeleteRecords", 2, Topics=[{"Name": name, "Partitions": partitions}], TimeoutMs=5000)
    offsets = [{"PartitionIndex": 0, "Offset": offset} for offset in (3, 2)]
    same("DeleteRecords", 2, Topics=[{"Name": topic, "Partitions": offsets}], TimeoutMs=5000)
    same("DeleteRecords", 2, Topics=[], TimeoutMs=5000)


# DescribeLogDirs, DescribeCluster, DescribeQuorum


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_describe_log_dirs(same: Same, written: str, version: int) -> None:
    same("DescribeLogDirs", version, Topics=[{"Topic": written, "Partitions": [0, 1, 2, 0]}])
    same("DescribeLogDirs", version, Topics=[])
    topics = [{"Topic": "no-such-topic", "Partitions": [0]}, {"Topic": written, "Partitions": []}]
    same("DescribeLogDirs", version, Topics=topics)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_cluster(same: Same, version: int) -> None:
    for asked in (False, True):
        same("DescribeCluster", version, IncludeClusterAuthorizedOperations=asked)
    for endpoint_type in (0, 1, 2, 3, -1):
        same("DescribeCluster", version, EndpointType=endpoint_type)
    same("DescribeCluster", version, IncludeFencedBrokers=True)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_quorum(same: Same, written: str, version: int) -> None:
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
def test_elect_leaders(same: Same, written: str, version: int) -> None:
    asked = [
        {"Topic": written, "Partitions": [0, 1, 5, -1, 0]},
        {"Topic": "no-such-topic", "Partitions": [0]},
        {"Topic": "", "Partitions": [0]},
        {"Topic": written, "Partitions": []},
    ]
    for kind in (0, 1, 2, -1):
        same("ElectLeaders", version, ElectionType=kind, TopicPartitions=asked, TimeoutMs=30_000)
        same("ElectLeaders", version, ElectionType=kind, TopicPartitions=[], TimeoutMs=30_000)


def test_elect_leaders_of_all_partitions(pair: Pair, written: str) -> None:
    """Other tests' topics may be there; but no partition of any topic is in the answer."""

    def scenario(side: Side) -> Any:
        answer = side.raw("ElectLeaders", 2, {"TopicPartitions": None, "TimeoutMs": 30_000})
        results = {result["Topic"]: result["PartitionResult"] for result in answer["ReplicaElectionResults"]}
        return results[written], any(results.values())

    pair.same(scenario)


@pytest.mark.parametrize("version", [0, 1])
def test_alter_partition_reassignments(same: Same, written: str, version: int) -> None:
    for replicas in ([NODE_ID], None, [], [NODE_ID, NODE_ID], [2], [NODE_ID, 2], [-1], [3, 2]):
        for topic, index in ((written, 0), (written, 9), (written, -1), ("no-such-topic", 0)):
            partitions = [{"PartitionIndex": index, "Replicas": replicas}]
            topics = [{"Name": topic, "Partitions": partitions}]
            same("AlterPartitionReassignments", version, Topics=topics, TimeoutMs=30_000)
    same("AlterPartitionReassignments", version, Topics=[], TimeoutMs=30_000)
    topics = [{"Name": written, "Partitions": [{"PartitionIndex": 0, "Replicas": [NODE_ID]}]}]
    same("AlterPartitionReassignments", version, Topics=topics, AllowReplicationFactorChange=False)


def log_dir(side: Side) -> str:
    (directory,) = side.raw("DescribeLogDirs", 4, {"Topics": []})["Results"]
    path: str = directory["LogDir"]
    return path


HERE, ELSEWHERE = "<where replicas are>", "/no/such/directory"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("paths", [[HERE], [ELSEWHERE], [""], [HERE, ELSEWHERE], [ELSEWHERE, HERE], []])
def test_alter_replica_log_dirs(pair: Pair, written: str, version: int, paths: list[str]) -> None:
    topics = [
        {"Name": written, "Partitions": [0, 1, 9, -1, 0]},
        {"Name": "no-such-topic", "Partitions": [0]},
        {"Name": "", "Partitions": [0]},
        {"Name": "no name", "Partitions": [0]},
        {"Name": written, "Partitions": []},
        {"Name": "empty", "Partitions": []},
        {"Name": written, "Partitions": [1]},
    ]

    def scenario(side: Side) -> Any:
        places = {HERE: log_dir(side)}
        dirs = [{"Path": places.get(path, path), "Topics": topics} for path in paths]
        return unordered(side.ask("AlterReplicaLogDirs", version, {"Dirs": dirs}), frozenset())

    pair.same(scenario)


def test_unregister_a_broker_that_does_not_exist(same: Same) -> None:
    """Of itself Kafka says NONE too, and is then no broker until it starts again."""
    for broker_id in (2, 0, -1, (1 << 31) - 1):
        same("UnregisterBroker", 0, BrokerId=broker_id)


SOME_ID, NO_ID = b"a directory's id", bytes(16)
CONTROLLER = {"Name": "CONTROLLER", "Host": "127.0.0.1", "Port": 1}


@pytest.mark.parametrize("cluster_id", [None, "<the cluster's>", "another", ""])
@pytest.mark.parametrize(
    ("voter_id", "directory_id"), [(2, SOME_ID), (2, NO_ID), (NODE_ID, SOME_ID), (-1, SOME_ID), (0, SOME_ID)]
)
def test_voters_cannot_be_changed(
    pair: Pair, cluster_id: str | None, voter_id: int, directory_id: bytes
) -> None:
    def scenario(side: Side) -> Any:
        own = side.raw("DescribeCluster", 1, {})["ClusterId"]
        voter = {
            "ClusterId": own if cluster_id and "<" in cluster_id else cluster_id,
            "VoterId": voter_id,
            "VoterDirectoryId": directory_id,
            "TimeoutMs": 1000,
        }
        listeners = (
            [CONTROLLER],
            [],
            [{**CONTROLLER, "Name": "X"}],
            [{**CONTROLLER, "Name": "X"}, CONTROLLER],
        )
        answers = [
            side.ask("AddRaftVoter", version, {**voter, "Listeners": each})
            for version in (0, 1)
            for each in listeners
        ]
        return [*answers, side.ask("RemoveRaftVoter", 0, voter)]

    pair.same(scenario)


def test_list_partition_reassignments(same: Same, written: str) -> None:
    same("ListPartitionReassignments", 0, Topics=None)
    topics = [
        {"Name": written, "PartitionIndexes": [0, 9]},
        {"Name": "no-such-topic", "PartitionIndexes": [0]},
    ]
    same("ListPartitionReassignments", 0, Topics=topics)


# DescribeProducers


def test_describe_producers(same: Same, pair: Pair, create: Callable[..., str]) -> None:
    topic = create(partitions=2)
    produce(pair.sides, topic, T, T)
    for producer_id, epoch in ((1_000_001, 0), (1_000_002, 5)):
        produce(pair.sides, topic, T + 1, T, producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
        produce(pair.sides, topic, T + 2, producer_id=producer_id, producer_epoch=epoch, base_sequence=2)
    same("DescribeProducers", 0, Topics=[{"Name": topic, "PartitionIndexes": [0, 1, 9, -1, 0]}])
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
def test_update_features_is_validated_alike(same: Same, version: int) -> None:
    for name, level, kind in FEATURE_UPDATES:
        update = {"Feature": name, "MaxVersionLevel": level, "UpgradeType": kind}
        same("UpdateFeatures", version, FeatureUpdates=[update], ValidateOnly=True)
    mixed = [
        {"Feature": "group.version", "MaxVersionLevel": 0, "UpgradeType": 2},
        {"Feature": "group.version", "MaxVersionLevel": 2, "UpgradeType": 1},
    ]
    same("UpdateFeatures", version, FeatureUpdates=mixed, ValidateOnly=True)
    same("UpdateFeatures", version, FeatureUpdates=[], ValidateOnly=True)


def test_update_features_at_version_0_only_upgrades(same: Same) -> None:
    for level in (0, 1, 2):
        for allowed in (False, True) if level else (True,):
            update = {"Feature": "group.version", "MaxVersionLevel": level, "AllowDowngrade": allowed}
            same("UpdateFeatures", 0, FeatureUpdates=[update])


def level_of(side: Side, feature: str) -> int | None:
    software = {"ClientSoftwareName": "compat", "ClientSoftwareVersion": "1"}
    finalized = side.raw("ApiVersions", 4, software)["FinalizedFeatures"]
    return {each["Name"]: each["MaxVersionLevel"] for each in finalized}.get(feature)


@pytest.mark.parametrize("feature", ["eligible.leader.replicas.version", "group.version"])
def test_a_feature_is_switched_off_and_on_again(pair: Pair, feature: str) -> None:
    off = {"Feature": feature, "MaxVersionLevel": 0, "UpgradeType": 2}
    on = {"Feature": feature, "MaxVersionLevel": 1, "UpgradeType": 1}

    def scenario(side: Side) -> Any:
        def wait_for(level: int | None) -> None:
            eventually(lambda: level_of(side, feature), lambda found: found == level)

        wait_for(1)
        answers = [side.ask("UpdateFeatures", 2, {"FeatureUpdates": [off]})]
        try:
            wait_for(None)
            answers.append(side.ask("UpdateFeatures", 2, {"FeatureUpdates": [{**on, "UpgradeType": 2}]}))
            if feature == "group.version":
                member = {"GroupId": "g", "MemberId": "m", "SubscribedTopicNames": []}
                answers.append(side.ask("ConsumerGroupHeartbeat", 1, member))
                answers.append(side.ask("ConsumerGroupDescribe", 1, {"GroupIds": ["g"]}))
        finally:
            answers.append(side.ask("UpdateFeatures", 1, {"FeatureUpdates": [on]}))
        wait_for(1)
        return [unordered(answer, frozenset()) for answer in answers]

    pair.same(scenario)
