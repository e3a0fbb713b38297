"""How soon a consumer group settles on kbroker with the settings it comes with. Apache Kafka needs 10 to 20 s
for the same: each step waits for the next heartbeat, every 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat.clients.confluent.members import QUIET, Members, produce
from compat.harness.broker import KBrokerProcess
from compat.harness.connection import Connection

HEARTBEAT_INTERVAL_SECONDS = 5
SETTLING_SECONDS = 10


@pytest.fixture(scope="module")
def broker() -> Iterator[KBrokerProcess]:
    with KBrokerProcess() as broker:
        yield broker


@pytest.fixture
def members(broker: KBrokerProcess, unique) -> Iterator[Members]:
    with Members(broker.bootstrap, unique("group")) as members:
        yield members


def create_topic(broker: KBrokerProcess, topic: str, partitions: int) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    (future,) = admin.create_topics([NewTopic(topic, partitions, 1)]).values()
    future.result(30)
    return topic


def group_epoch(broker: KBrokerProcess, group: str) -> int:
    with Connection(broker.bootstrap) as admin:
        return int(admin.ask("ConsumerGroupDescribe", 1, GroupIds=[group])["Groups"][0]["GroupEpoch"])


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_ten_members_that_start_together_settle_within_a_second(broker, topic, members, protocol):
    create_topic(broker, topic, 20)
    for number in range(10):
        members.start(f"member {number}", topic, protocol=protocol)
    took = members.poll_until(lambda: members.counts() == [2] * 10)
    assert took < 1


@pytest.mark.slow
def test_a_join_into_a_settled_group_takes_one_heartbeat_interval_and_half_a_second(broker, topic, members):
    create_topic(broker, topic, 12)
    for number in range(3):
        members.start(f"member {number}", topic)
    members.poll_until(lambda: members.counts() == [4] * 3)
    with pytest.raises(AssertionError):
        members.poll_until(lambda: members.counts() != [4] * 3, SETTLING_SECONDS + HEARTBEAT_INTERVAL_SECONDS)
    members.start("late", topic)
    took = members.poll_until(lambda: members.counts() == [3] * 4)
    assert took < HEARTBEAT_INTERVAL_SECONDS + 0.5


def test_members_go_on_after_a_restart_of_the_broker_without_a_rebalance(broker, topic, members):
    create_topic(broker, topic, 4)
    members.start("one", topic)
    members.start("two", topic)
    members.poll_until(lambda: members.counts() == [2, 2])
    epoch = group_epoch(broker, members.group)
    broker.restart()
    values = [str(number).encode() for number in range(40)]
    produce(broker.bootstrap, topic, 4, values)
    members.poll_until(lambda: len(members.consumed) == 40)
    assert members.counts() == [2, 2]
    assert group_epoch(broker, members.group) == epoch
