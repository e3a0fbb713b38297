"""The subscription and assignment that consumers embed in JoinGroup and SyncGroup."""

from __future__ import annotations

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment as TheirAssignment
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription as TheirSubscription

from kbroker.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    write,
)

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["a", "b"],
    user_data=b"data",
    owned_partitions=[TopicPartition("a", [0, 2])],
    generation_id=4,
    rack_id="r1",
)
ASSIGNMENT = ConsumerProtocolAssignment(
    assigned_partitions=[TopicPartition("a", [0, 1]), TopicPartition("b", [])], user_data=None
)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_subscription_keeps_what_its_version_can_carry(version):
    expected = ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"data")
    for since, name in ((1, "owned_partitions"), (2, "generation_id"), (3, "rack_id")):
        if version >= since:
            setattr(expected, name, getattr(SUBSCRIPTION, name))
    written = write(SUBSCRIPTION, version)
    assert written[:2] == bytes([0, version])
    assert read_subscription(written) == expected


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_an_assignment_round_trips(version):
    assert read_assignment(memoryview(write(ASSIGNMENT, version))) == ASSIGNMENT


def test_a_version_above_the_newest_is_read_as_the_newest():
    assert (
        read_subscription(b"\x00\x09" + write(SUBSCRIPTION, 3)[2:] + b"fields of the future") == SUBSCRIPTION
    )


def test_kafka_python_reads_what_we_write():
    subscription = TheirSubscription.decode(write(SUBSCRIPTION, 3))
    assert (subscription.topics, subscription.user_data, subscription.rack_id) == (["a", "b"], b"data", "r1")
    assert [(each.topic, each.partitions) for each in subscription.owned_partitions] == [("a", [0, 2])]
    assignment = TheirAssignment.decode(write(ASSIGNMENT, 0))
    assert [(p.topic, p.partitions) for p in assignment.assigned_partitions] == [("a", [0, 1]), ("b", [])]
