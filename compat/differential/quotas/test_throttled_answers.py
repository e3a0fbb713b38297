"""What clients above their quotas are answered, version by version, and how long their connections wait.

A client's first request tells its wait exactly: all that counts then is its size and the bound.
"""

from __future__ import annotations

import time
import uuid

import pytest

from compat.harness.batches import Record, batch
from compat.harness.connection import ConnectionClosed
from compat.harness.waiting import eventually

from .clients import NamedConnection, a_client, entity, set_quotas

VALUE = bytes(10_000)


def topic_of(side, partitions=1):
    name = f"throttled-{uuid.uuid4().hex}"
    return name, side.create_topic(name, partitions)


def in_force(side, client, request):
    """The first answer that says that the client has to wait: a quota is known a moment after it is set."""
    seen = []

    def is_throttled():
        fresh = NamedConnection(side.server.bootstrap, client.client_id)
        seen.append(request(fresh))
        fresh.close()
        return seen[-1]["ThrottleTimeMs"] > 0

    eventually(is_throttled)
    return seen[-1]


def warmed(side, **values):
    """A client whose quotas are known: of Kafka's broker, or of its controller, another client is asked."""
    client = a_client(side, **values)
    marker = a_client(side, request_percentage=1e-7)
    in_force(side, marker, lambda connection: connection.ask("Metadata", 9, {"Topics": []}))
    marker.close()
    return client


def produce(topic, topic_id, acks=-1):
    data = {
        "Name": topic,
        "TopicId": topic_id,
        "PartitionData": [{"Index": 0, "Records": batch([Record(VALUE)])}],
    }
    return {"Acks": acks, "TimeoutMs": 10_000, "TopicData": [data]}


@pytest.mark.parametrize("version", range(3, 14))
def test_produce(pair, version):
    def scenario(side):
        topic, topic_id = topic_of(side)
        client = warmed(side, producer_byte_rate=1000)
        sent = time.monotonic()
        answer = client.supported("Produce", version, produce(topic, topic_id))
        client.ask("Metadata", 9, {"Topics": []})
        waited_ms = (time.monotonic() - sent) * 1000
        client.close()
        wait_ms = answer["ThrottleTimeMs"]
        # The name or the id of the topic, and how both are written, make the size of a request.
        return {
            "wait": 100 < wait_ms < 200,
            "waited as told": wait_ms <= waited_ms <= wait_ms + 5000,
            "errors": [
                part["ErrorCode"] for each in answer["Responses"] for part in each["PartitionResponses"]
            ],
        }

    pair.same(scenario)


def test_the_wait_after_a_produce_is_as_kafka_computes_it(pair):
    def scenario(side):
        topic, topic_id = topic_of(side)
        client = warmed(side, producer_byte_rate=1000)
        answer = client.supported("Produce", 9, produce(topic, topic_id))
        client.close()
        return answer["ThrottleTimeMs"]

    pair.same(scenario)


def test_produce_without_an_answer(pair):
    def scenario(side):
        topic, topic_id = topic_of(side)
        client = warmed(side, producer_byte_rate=1000)
        began = time.monotonic()
        client.send(
            "Produce",
            9,
            {
                **produce(topic, topic_id, acks=0),
                "TopicData": [
                    {"Name": topic, "PartitionData": [{"Index": 0, "Records": batch([Record(VALUE)])}]}
                ],
            },
        )
        client.ask("Metadata", 9, {"Topics": []})
        waited_ms = (time.monotonic() - began) * 1000
        client.close()
        return 100 <= waited_ms <= 5000

    pair.same(scenario)


def fetch(topic, topic_id, **fields):
    partition = {
        "Partition": 0,
        "CurrentLeaderEpoch": -1,
        "FetchOffset": 0,
        "LastFetchedEpoch": -1,
        "LogStartOffset": -1,
        "PartitionMaxBytes": 1 << 20,
    }
    return {
        "ReplicaId": -1,
        "MaxWaitMs": 0,
        "MinBytes": 1,
        "MaxBytes": 1 << 20,
        "IsolationLevel": 0,
        "SessionId": 0,
        "SessionEpoch": 0,
        "Topics": [{"Topic": topic, "TopicId": topic_id, "Partitions": [partition]}],
        **fields,
    }


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch(pair, version):
    def scenario(side):
        topic, topic_id = topic_of(side)
        side.produce(topic, batch([Record(bytes(100_000))]))
        client = warmed(side, consumer_byte_rate=9_900)
        sent = time.monotonic()
        answer = client.supported("Fetch", version, fetch(topic, topic_id))
        client.ask("Metadata", 9, {"Topics": []})
        waited_ms = (time.monotonic() - sent) * 1000
        client.close()
        wait_ms = answer.pop("ThrottleTimeMs")
        return {
            "wait": 90 < wait_ms < 150,
            "waited as told": wait_ms <= waited_ms <= wait_ms + 5000,
            "answer": answer,
        }

    pair.same(scenario)


def test_a_fetch_session_under_a_quota(pair):
    def scenario(side):
        topic, topic_id = topic_of(side)
        side.produce(topic, batch([Record(bytes(10_000))]))
        client = warmed(side, consumer_byte_rate=1_500)
        begun = client.supported("Fetch", 12, fetch(topic, topic_id))
        session = {"SessionId": begun["SessionId"], "SessionEpoch": 1, "Topics": []}
        second = client.supported("Fetch", 12, {**fetch(topic, topic_id), **session})
        client.close()
        return {
            "begun": (begun["SessionId"] != 0, begun["ThrottleTimeMs"], len(begun["Responses"])),
            "throttled": second["ThrottleTimeMs"] > 1000,
            "same session": second["SessionId"] == begun["SessionId"],
            "answer": (second["ErrorCode"], second["Responses"]),
        }

    pair.same(scenario)


def mutated(answer, results):
    """Codes by topic, and about how many seconds there are to wait: it gets less while a test runs."""
    codes = [each["ErrorCode"] for each in answer[results]]
    return codes, round(answer["ThrottleTimeMs"] / 10_000) * 10


def wanted(name, partitions):
    return {
        "Name": name,
        "NumPartitions": partitions,
        "ReplicationFactor": 1,
        "Assignments": [],
        "Configs": [],
    }


@pytest.mark.parametrize("version", range(2, 8))
def test_create_topics(pair, version):
    def scenario(side):
        client = warmed(side, controller_mutation_rate=1)
        names = [f"mutated-{uuid.uuid4().hex}" for _ in range(3)]

        def create(*topics, **fields):
            connection = NamedConnection(side.server.bootstrap, client.client_id)
            values = {"Topics": list(topics), "timeoutMs": 10_000, **fields}
            answer = connection.supported("CreateTopics", version, values)
            connection.close()
            return mutated(answer, "Topics")

        seen = [
            create(wanted(names[0], 5), validateOnly=True),
            create(wanted(names[0], 36)),  # above the quota, but nothing was used before
            create(wanted(names[1], 1)),
            create(wanted(names[1], 1), validateOnly=True),
            create(wanted(names[0], 1)),  # exists
            create(wanted("not a name", 1)),
            create(wanted(names[2], 0)),
            create(wanted(names[1], 1), wanted(names[2], 1)),
        ]
        client.close()
        return seen

    pair.same(scenario)


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics(pair, version):
    def scenario(side):
        big, _ = topic_of(side, 40)
        small, _ = topic_of(side)
        client = warmed(side, controller_mutation_rate=1)

        def delete(*names):
            connection = NamedConnection(side.server.bootstrap, client.client_id)
            values = {"TimeoutMs": 10_000}
            if version < 6:
                values["TopicNames"] = list(names)
            else:
                values["Topics"] = [{"Name": name, "TopicId": bytes(16)} for name in names]
            answer = connection.supported("DeleteTopics", version, values)
            connection.close()
            return mutated(answer, "Responses")

        seen = [delete(big), delete("there-is-none"), delete(small)]
        client.close()
        return seen

    pair.same(scenario)


@pytest.mark.parametrize("version", range(4))
def test_create_partitions(pair, version):
    def scenario(side):
        big, _ = topic_of(side)
        small, _ = topic_of(side)
        client = warmed(side, controller_mutation_rate=1)

        def grow(name, count, *, validate_only=False):
            connection = NamedConnection(side.server.bootstrap, client.client_id)
            topics = [{"Name": name, "Count": count, "Assignments": None}]
            values = {"Topics": topics, "TimeoutMs": 10_000, "ValidateOnly": validate_only}
            answer = connection.supported("CreatePartitions", version, values)
            connection.close()
            return mutated(answer, "Results")

        seen = [
            grow(small, 5, validate_only=True),
            grow(big, 38),
            grow(small, 2),
            grow(small, 2, validate_only=True),
            grow(small, 1),
            grow("there-is-none", 2),
        ]
        client.close()
        return seen

    pair.same(scenario)


REQUESTS = {
    "Metadata": ({"Topics": []}, range(13)),
    "ApiVersions": ({"ClientSoftwareName": "x", "ClientSoftwareVersion": "1"}, range(5)),
    # Kafka lets a client of versions 1 to 3 wait as well, but does not tell it.
    "FindCoordinator": ({"Key": "g", "KeyType": 0, "CoordinatorKeys": ["g"]}, (0, 4, 5, 6)),
    "Heartbeat": ({"GroupId": "g", "GenerationId": 1, "MemberId": "m"}, range(5)),
    "ListGroups": ({}, range(6)),
    "DescribeCluster": ({}, range(3)),
    "DescribeClientQuotas": ({"Components": [], "Strict": True}, range(2)),
    "AlterClientQuotas": ({"Entries": [], "ValidateOnly": True}, range(2)),
    "DescribeConfigs": ({"Resources": []}, range(1, 5)),
    "ListTransactions": ({}, range(3)),
}


@pytest.mark.parametrize("api", REQUESTS)
def test_the_time_of_requests(pair, api):
    values, versions = REQUESTS[api]

    def scenario(side):
        client = a_client(side, request_percentage=1e-7)
        in_force(side, client, lambda connection: connection.ask("Metadata", 9, {"Topics": []}))
        seen = {}
        for version in versions:
            connection = NamedConnection(side.server.bootstrap, client.client_id)
            answer = connection.supported(api, version, values)
            connection.close()
            seen[version] = answer.get("ThrottleTimeMs")
        client.close()
        return seen

    pair.same(scenario)


def test_new_connections_from_an_address_above_its_rate_are_closed(pair):
    """Ten at once are a rate of one in the ten seconds that count; the next one is held, and closed."""
    address = "127.0.0.2"

    def scenario(side):
        set_quotas(side, entity(ip=address), connection_creation_rate=1.0)
        marker = a_client(side, request_percentage=1e-7)
        in_force(side, marker, lambda connection: connection.ask("Metadata", 9, {"Topics": []}))
        marker.close()
        outcomes = []
        for _ in range(12):
            began = time.monotonic()
            connection = NamedConnection(side.server.bootstrap, "from elsewhere", source=address)
            try:
                connection.ask("Metadata", 9, {"Topics": []})
                outcomes.append("answered")
            except ConnectionClosed:
                outcomes.append(f"closed, held: {time.monotonic() - began > 0.1}")
            connection.close()
        set_quotas(side, entity(ip=address), connection_creation_rate=None)
        return outcomes

    pair.same(scenario)
