"""A live group goes from the classic to the consumer protocol and back, and reads everything meanwhile."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from compat.clients.confluent.members import Members, produce

PARTITIONS = 6


def group_type(admin: AdminClient, group: str) -> str:
    listed = admin.list_consumer_groups().result(30).valid
    return next(str(each.type.name) for each in listed if each.group_id == group)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_live_group_moves_to_the_consumer_protocol_and_back(
    kafka_server, admin: AdminClient, new_topic, topic, members: Members, strategy: str
) -> None:
    if strategy == "cooperative-sticky" and kafka_server.name != "kbroker":
        pytest.skip("Apache Kafka takes librdkafka's user data for a custom assignor's and refuses")
    new_topic(PARTITIONS)
    produced: set[bytes] = set()

    def produce_and_read(stage: str, *counts: int) -> None:
        """The members own that many partitions each, and read what is produced now."""
        members.poll_until(lambda: members.counts() == list(counts))
        values = [f"{stage} {number}".encode() for number in range(60)]
        produce(kafka_server.bootstrap, topic, PARTITIONS, values)
        produced.update(values)
        members.poll_until(lambda: produced == {value for _, _, value in members.consumed})
        owners = [members.owned(name) for name in members.names]
        assert sum(map(len, owners)) == len(set().union(*owners)) == PARTITIONS

    members.start("classic 1", topic, protocol="classic", partition_assignment_strategy=strategy)
    members.start("classic 2", topic, protocol="classic", partition_assignment_strategy=strategy)
    produce_and_read("classic only", 3, 3)
    assert group_type(admin, members.group) == "CLASSIC"

    members.start("consumer 1", topic)
    produce_and_read("both protocols", 2, 2, 2)
    assert group_type(admin, members.group) == "CONSUMER"

    members.stop("classic 1")
    members.start("consumer 2", topic)
    produce_and_read("one classic member is left", 2, 2, 2)
    members.stop("classic 2")
    produce_and_read("consumer only", 3, 3)

    members.start("classic 3", topic, protocol="classic", partition_assignment_strategy=strategy)
    produce_and_read("a classic member is back", 2, 2, 2)
    members.stop("consumer 1")
    members.stop("consumer 2")
    produce_and_read("classic again", PARTITIONS)
    assert group_type(admin, members.group) == "CLASSIC"
