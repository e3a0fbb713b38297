"""What is in `__consumer_offsets` and `__transaction_state`, and what may be done to them."""

from __future__ import annotations

import pytest

from compat.differential.produce.test_produce import CONTENTS, produce
from compat.harness.waiting import eventually

from .records import OFFSETS, TRANSACTIONS, Follower

NAMES = (OFFSETS, TRANSACTIONS)
MEMBER = "m" * 22


def commit(side, group, topic, offset, version=9, partition=0, **fields):
    wanted = {
        "PartitionIndex": partition,
        "CommittedOffset": offset,
        "CommittedLeaderEpoch": fields.pop("epoch", -1),
        "CommittedMetadata": fields.pop("metadata", ""),
    }
    asked = {
        "GroupId": group,
        "GenerationIdOrMemberEpoch": -1,
        "MemberId": "",
        "Topics": [{"Name": topic, "Partitions": [wanted]}],
        **fields,
    }
    (answered,) = side.raw("OffsetCommit", version, asked)["Topics"]
    assert answered["Partitions"][0]["ErrorCode"] == 0


# what may be done


def test_metadata(pair):
    def scenario(side):
        asked = {"Topics": [{"Name": name} for name in NAMES], "AllowAutoTopicCreation": False}
        topics = side.raw("Metadata", 9, asked)["Topics"]
        return sorted(
            (each["Name"], each["ErrorCode"], each["IsInternal"], len(each["Partitions"])) for each in topics
        )

    pair.same(scenario)


def test_patterns_take_them_in(pair, unique):
    """On the server: clients leave them out themselves."""
    group = unique("group")

    def scenario(side):
        asked = {
            "GroupId": group, "MemberId": MEMBER, "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000,
            "SubscribedTopicNames": [], "SubscribedTopicRegex": "__consumer_off.*", "TopicPartitions": [],
            "InstanceId": None, "RackId": None, "ServerAssignor": None,
        }  # fmt: skip
        counts = []

        def assigned():
            answer = side.raw("ConsumerGroupHeartbeat", 1, asked)
            assert answer["ErrorCode"] == 0
            asked["MemberEpoch"] = answer["MemberEpoch"]
            asked["TopicPartitions"] = asked["SubscribedTopicNames"] = asked["SubscribedTopicRegex"] = None
            asked["RebalanceTimeoutMs"] = -1
            if answer["Assignment"]:
                counts[:] = [len(each["Partitions"]) for each in answer["Assignment"]["TopicPartitions"]]
            return counts

        eventually(assigned)
        side.raw("ConsumerGroupHeartbeat", 1, {**asked, "MemberEpoch": -1})
        return counts

    pair.same(scenario)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_creates_or_writes_them_or_deletes_records(pair, name):
    def scenario(side):
        new = {"Name": name, "NumPartitions": 1, "ReplicationFactor": 1}
        created = side.raw("CreateTopics", 7, {"Topics": [new], "timeoutMs": 10_000})["Topics"]
        collision = {**new, "Name": name.replace("_", ".")}
        collided = side.raw("CreateTopics", 7, {"Topics": [collision], "timeoutMs": 10_000})["Topics"]
        partitions = [{"PartitionIndex": 0, "Offset": 0}]
        asked = {"Topics": [{"Name": name, "Partitions": partitions}], "TimeoutMs": 10_000}
        return [
            created[0]["ErrorCode"],
            collided[0]["ErrorCode"],
            produce(side, name, CONTENTS["one record"]),
            side.ask("DeleteRecords", 2, asked),
        ]

    pair.same(scenario)


def test_they_are_no_part_of_a_transaction(pair, unique):
    transactional_id = unique("id")

    def scenario(side):
        asked = {"TransactionalId": transactional_id, "TransactionTimeoutMs": 60_000}
        producer = initialized(side, asked)
        return [
            side.ask(
                "AddPartitionsToTxn",
                3,
                {
                    "V3AndBelowTransactionalId": transactional_id,
                    "V3AndBelowProducerId": producer["ProducerId"],
                    "V3AndBelowProducerEpoch": producer["ProducerEpoch"],
                    "V3AndBelowTopics": [{"Name": name, "Partitions": [0]}],
                },
            )
            for name in NAMES
        ]

    pair.same(scenario)


@pytest.mark.parametrize("name", NAMES)
def test_their_configs(pair, name):
    def scenario(side):
        resource = {"ResourceType": 2, "ResourceName": name, "ConfigurationKeys": None}
        (answer,) = side.raw("DescribeConfigs", 4, {"Resources": [resource]})["Results"]
        own = [config for config in answer["Configs"] if config["ConfigSource"] == 1]
        return answer["ErrorCode"], sorted((config["Name"], config["Value"]) for config in own)

    pair.same(scenario)


@pytest.mark.parametrize("name", NAMES)
def test_offsets_and_producers(pair, name):
    def scenario(side):
        def offset(timestamp):
            partition = {"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": timestamp}
            asked = {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": [partition]}]}
            (answered,) = side.raw("ListOffsets", 7, asked)["Topics"][0]["Partitions"]
            return answered

        earliest, latest = offset(-2), offset(-1)
        asked = {"Topics": [{"Name": name, "PartitionIndexes": [0, 3]}]}
        return [
            earliest["ErrorCode"],
            latest["ErrorCode"],
            earliest["Offset"] <= latest["Offset"],
            [
                each["ErrorCode"]
                for each in side.raw("DescribeProducers", 0, asked)["Topics"][0]["Partitions"]
            ],
        ]

    pair.same(scenario)


# offsets


def test_commits(pair, topic, unique):
    group = unique("group")

    def scenario(side):
        side.create_topic(topic, 2)
        follower = Follower(side)
        commit(side, group, topic, 5, metadata="words", epoch=0)
        commit(side, group, topic, 6, partition=1, metadata=None)
        commit(side, group, topic, 4, metadata="ü" * 10)
        commit(side, group, topic, 7, version=2, RetentionTimeMs=100_000, metadata="until then")
        commit(side, group, topic, 8, version=3)
        return follower.until(5)

    pair.same(scenario)


def test_deleted_offsets_and_groups(pair, topic, unique):
    group = unique("group")

    def scenario(side):
        side.create_topic(topic, 2)
        follower = Follower(side)
        commit(side, group, topic, 5)
        commit(side, group, topic, 6, partition=1)
        wanted = [{"Name": topic, "Partitions": [{"PartitionIndex": 0}]}]
        side.raw("OffsetDelete", 0, {"GroupId": group, "Topics": wanted})
        eventually(
            lambda: (
                side.raw("DeleteGroups", 2, {"GroupsNames": [group]})["Results"][0]["ErrorCode"] in (0, 69)
            )
        )
        records = follower.until(4)
        # Kafka buries a group that was never more than a name, too.
        return [record for record in records if record["type"] == 1]

    pair.same(scenario)


# groups


def test_a_classic_group(pair, topic, unique):
    group = unique("group")

    def scenario(side):
        side.create_topic(topic)
        follower = Follower(side)
        asked = {
            "GroupId": group, "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 40_000, "MemberId": "",
            "GroupInstanceId": "instance", "ProtocolType": "consumer",
            "Protocols": [{"Name": "range", "Metadata": b"r"}, {"Name": "other", "Metadata": b"o"}],
        }  # fmt: skip
        joined = side.raw("JoinGroup", 5, asked)
        member_id = joined["MemberId"]
        assigned = [{"MemberId": member_id, "Assignment": b"given"}]
        asked = {
            "GroupId": group, "GenerationId": joined["GenerationId"], "MemberId": member_id,
            "GroupInstanceId": "instance", "Assignments": assigned,
        }  # fmt: skip
        assert side.raw("SyncGroup", 3, asked)["ErrorCode"] == 0
        leaving = [{"MemberId": member_id, "GroupInstanceId": "instance"}]
        assert side.raw("LeaveGroup", 3, {"GroupId": group, "Members": leaving})["ErrorCode"] == 0
        records = follower.until(3)
        for record in records:
            for member in record["value"]["members"]:
                assert member["member_id"] == member_id
                member["member_id"] = "<member>"
            if record["value"]["leader"]:
                assert record["value"]["leader"] == member_id
                record["value"]["leader"] = "<member>"
        return records

    pair.same(scenario)


def test_a_consumer_group(pair, topic, unique):
    group = unique("group")

    def scenario(side):
        side.create_topic(topic, 2)
        follower = Follower(side)
        asked = {
            "GroupId": group, "MemberId": MEMBER, "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000,
            "SubscribedTopicNames": [topic], "SubscribedTopicRegex": None, "TopicPartitions": [],
            "InstanceId": None, "RackId": "rack", "ServerAssignor": "range",
        }  # fmt: skip
        assert side.raw("ConsumerGroupHeartbeat", 1, asked)["ErrorCode"] == 0
        joined = follower.until(5)
        assert side.raw("ConsumerGroupHeartbeat", 1, {**asked, "MemberEpoch": -1})["ErrorCode"] == 0
        return joined, follower.until(9)[:9]

    pair.same(scenario)


# transactions


def initialized(side, asked):
    producers = []

    def begun():
        answer = side.raw("InitProducerId", 4, {"ProducerId": -1, "ProducerEpoch": -1, **asked})
        producers[:] = [answer]
        return answer["ErrorCode"] == 0

    eventually(begun)
    return producers[0]


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction(pair, topic, unique, committed):
    transactional_id = unique("id")

    def scenario(side):
        side.create_topic(topic, 2)
        follower = Follower(side, TRANSACTIONS)
        producer = initialized(side, {"TransactionalId": transactional_id, "TransactionTimeoutMs": 60_000})
        producer_id, epoch = producer["ProducerId"], producer["ProducerEpoch"]
        asked = {
            "V3AndBelowTransactionalId": transactional_id,
            "V3AndBelowProducerId": producer_id,
            "V3AndBelowProducerEpoch": epoch,
            "V3AndBelowTopics": [{"Name": topic, "Partitions": [0, 1]}],
        }
        side.raw("AddPartitionsToTxn", 3, asked)
        follower.until(2)
        asked = {
            "TransactionalId": transactional_id,
            "ProducerId": producer_id,
            "ProducerEpoch": epoch,
            "Committed": committed,
        }
        eventually(lambda: side.raw("EndTxn", 3, asked)["ErrorCode"] == 0)
        records = follower.until(4)
        for record in records:
            for name in ("producer_id", "previous_producer_id"):
                if record["value"][name] == producer_id:
                    record["value"][name] = "<producer>"
        return sorted(records, key=lambda record: record["value"]["transaction_status"])

    pair.same(scenario)
