"""Loads on share groups: Kafka's own performance tool, librdkafka's first record, raw acknowledgements."""

from __future__ import annotations

import itertools
import time

from confluent_kafka import ShareConsumer

from benchmarks.compare import java_loads
from benchmarks.compare.brokers import Broker
from compat.harness.connection import Connection
from compat.harness.waiting import eventually

_MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
_ACCEPT = 1
_GROUP_CONFIGS = 32
_FIRST_SECONDS = 60
_groups = itertools.count()


def topic_id(broker: Broker, topic: str) -> bytes:
    with Connection(broker.bootstrap) as connection:
        return bytes(connection.ask("Metadata", 12, Topics=[_named(topic)])["Topics"][0]["TopicId"])


def _named(topic: str) -> dict[str, object]:
    return {"TopicId": bytes(16), "Name": topic}


def new_group(broker: Broker, topic: str, partitions: int) -> str:
    """A share group that begins at the start of the topic, and need not find out that it exists."""
    group = f"share-{next(_groups)}"
    partitions_from_start = [{"PartitionIndex": number, "StartOffset": 0} for number in range(partitions)]

    def begins() -> bool:
        with Connection(broker.bootstrap) as connection:
            connection.ask("FindCoordinator", 4, KeyType=0, CoordinatorKeys=[group])
            topics = [{"TopicName": topic, "Partitions": partitions_from_start}]
            answer = connection.ask("AlterShareGroupOffsets", 0, GroupId=group, Topics=topics)
        codes = [each["ErrorCode"] for each in answer["Responses"] for each in each["Partitions"]]
        return not answer["ErrorCode"] and bool(codes) and not any(codes)

    eventually(begins, seconds=60)  # Apache Kafka makes the topics of its coordinators when first asked
    return group


def group_from_start(broker: Broker) -> str:
    """The name of a share group that will begin at the start of its topics."""
    group = f"share-{next(_groups)}"
    config = {"Name": "share.auto.offset.reset", "ConfigOperation": 0, "Value": "earliest"}
    resource = {"ResourceType": _GROUP_CONFIGS, "ResourceName": group, "Configs": [config]}
    with Connection(broker.bootstrap) as connection:
        answer = connection.ask("IncrementalAlterConfigs", 1, Resources=[resource], ValidateOnly=False)
    if any(each["ErrorCode"] for each in answer["Responses"]):
        raise RuntimeError(f"the broker answered {answer}")
    return group


def consume(broker: Broker, topic: str, group: str, records: int, members: int) -> float:
    """share-consumer-perf from the start; records per second."""
    said = java_loads.run_tool(
        "org.apache.kafka.tools.ShareConsumerPerformance",
        *("--topic", topic, "--num-records", str(records), "--bootstrap-server", broker.bootstrap),
        *("--group", group, "--timeout", "60000", "--hide-header", "--threads", str(members)),
    )
    fields = [field.strip() for field in said.strip().splitlines()[-1].split(",")]
    if int(fields[5]) < records:
        raise RuntimeError(f"share-consumer-perf read {fields[5]} of {records} records")
    return float(fields[4])


def first_record(broker: Broker, topic: str, group: str) -> float:
    """Seconds from a member's start until it has a record."""
    begin = time.perf_counter()
    with ShareConsumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0}
    ) as consumer:
        consumer.subscribe([topic])
        while time.perf_counter() - begin < _FIRST_SECONDS:
            if any(message.error() is None for message in consumer.poll(1.0)):
                return time.perf_counter() - begin
    raise RuntimeError("no record came")


def acknowledge(broker: Broker, topic: str, group: str, count: int) -> list[float]:
    """Fetch and accept one record at a time; milliseconds that each acknowledgement took."""
    id_of_topic = topic_id(broker, topic)
    took: list[float] = []
    with Connection(broker.bootstrap) as connection:
        for epoch in range(count):
            fetched = connection.ask("ShareFetch", 2, _fetch(group, id_of_topic, 2 * epoch))
            (acquired,) = fetched["Responses"][0]["Partitions"][0]["AcquiredRecords"]
            batch = {
                "FirstOffset": acquired["FirstOffset"],
                "LastOffset": acquired["LastOffset"],
                "AcknowledgeTypes": [_ACCEPT],
            }
            partitions = [{"PartitionIndex": 0, "AcknowledgementBatches": [batch]}]
            request = {
                "GroupId": group,
                "MemberId": _MEMBER,
                "ShareSessionEpoch": 2 * epoch + 1,
                "IsRenewAck": False,
                "Topics": [{"TopicId": id_of_topic, "Partitions": partitions}],
            }
            begin = time.perf_counter()
            answer = connection.ask("ShareAcknowledge", 2, request)
            took.append((time.perf_counter() - begin) * 1000)
            if answer["ErrorCode"] or answer["Responses"][0]["Partitions"][0]["ErrorCode"]:
                raise RuntimeError(f"the broker answered {answer}")
    return took


def _fetch(group: str, id_of_topic: bytes, epoch: int) -> dict[str, object]:
    asked = [{"TopicId": id_of_topic, "Partitions": [{"PartitionIndex": 0, "AcknowledgementBatches": []}]}]
    return {
        "GroupId": group,
        "MemberId": _MEMBER,
        "ShareSessionEpoch": epoch,
        "MaxWaitMs": 5000,
        "MinBytes": 1,
        "MaxBytes": 1048576,
        "MaxRecords": 1,
        "BatchSize": 1,
        "ShareAcquireMode": 1,
        "IsRenewAck": False,
        "Topics": asked if epoch == 0 else [],
        "ForgottenTopicsData": [],
    }
