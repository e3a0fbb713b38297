"""Dead letters of share groups, from the configs to the topic, on a broker that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbroker.testing import KafkaBroker
from tests.cli.test_dlq import read
from tests.dead_letters.share_groups import (
    ACCEPT,
    REJECT,
    RELEASE,
    acknowledge,
    configure_group,
    dead_letters,
    produce,
    share_consumer,
)
from tests.support.server_process import eventually

AUTO_CREATE = {"errors.deadletterqueue.auto.create.topics.enable": "true"}
NAME = "errors.deadletterqueue.topic.name"


def named(**configs: str) -> dict[str, str]:
    return {NAME.replace(".", "_"): "dlq.orders", **configs}


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(topics={"orders": 2}, configs=AUTO_CREATE) as running:
        yield running


def test_rejected_records_go_to_a_topic_that_is_made_for_them(broker: KafkaBroker) -> None:
    where = broker.bootstrap_servers
    configure_group(where, **named(errors_deadletterqueue_copy_record_enable="true"))
    produce(where, "orders", range(10), partition=1, headers=[("trace", b"1")])
    with share_consumer(where, "orders") as consumer:
        acknowledge(
            consumer,
            lambda message: REJECT if message.offset() % 2 else ACCEPT,
            lambda seen: len(seen) == 10,
        )
    letters = dead_letters(where, "dlq.orders")
    assert [
        (origin.topic, origin.partition, origin.offset, origin.group, origin.delivery_count)
        for origin, _, _, _ in letters
    ] == [("orders", 1, offset, "billing", 1) for offset in (1, 3, 5, 7, 9)]
    assert {origin.reason for origin, _, _, _ in letters} == {"Offset rejected by client."}
    assert [(key, value, headers) for _, key, value, headers in letters] == [
        (b"k%d" % n, b"v%d" % n, [("trace", b"1")]) for n in (1, 3, 5, 7, 9)
    ]


def test_records_that_reach_the_delivery_limit_leave_headers_unless_they_are_copied(
    broker: KafkaBroker,
) -> None:
    where = broker.bootstrap_servers
    configure_group(where, **named(share_delivery_count_limit="2"))
    produce(where, "orders", range(3), partition=0)
    with share_consumer(where, "orders") as consumer:
        acknowledge(consumer, lambda _: RELEASE, lambda seen: len(seen) == 6)
        eventually(lambda: len(dead_letters(where, "dlq.orders")) == 3)
    letters = dead_letters(where, "dlq.orders")
    assert sorted(origin.offset or 0 for origin, _, _, _ in letters) == [0, 1, 2]
    assert {(origin.delivery_count, origin.reason, key, value) for origin, key, value, _ in letters} == {
        (2, "Offset delivery count exceeded the threshold.", None, None)
    }


def test_one_setting_of_the_broker_gives_every_group_and_topic_dead_letters() -> None:
    configs = {**AUTO_CREATE, f"kbroker.group.{NAME}": "dlq.{group}.{topic}"}
    with KafkaBroker(topics={"orders": 1}, configs=configs) as broker:
        where = broker.bootstrap_servers
        configure_group(where)
        produce(where, "orders", range(2))
        with share_consumer(where, "orders") as consumer:
            acknowledge(consumer, lambda _: REJECT, lambda seen: len(seen) == 2)
        assert len(dead_letters(where, "dlq.billing.orders")) == 2


@pytest.mark.parametrize(
    ("configs", "topic", "said"),
    [
        ({NAME: "dlq.orders"}, None, "there is no topic dlq.orders, and errors.deadletterqueue.auto.create"),
        ({NAME: "other"}, None, "other does not begin with dlq."),
        ({NAME: "{topic}"}, None, "orders is the topic that the records come from"),
        ({NAME: "dlq.plain"}, "dlq.plain", "has not errors.deadletterqueue.group.enable=true"),
    ],
)
def test_where_there_can_be_no_dead_letters_records_are_archived_and_the_log_says_why(
    configs: dict[str, str], topic: str | None, said: str
) -> None:
    with KafkaBroker(topics={"orders": 1}) as broker:
        if topic is not None:
            broker.create_topic(topic)
        where = broker.bootstrap_servers
        configure_group(where, **{name.replace(".", "_"): value for name, value in configs.items()})
        produce(where, "orders", range(2))
        with share_consumer(where, "orders") as consumer:
            acknowledge(consumer, lambda _: REJECT, lambda seen: len(seen) == 2)
            produce(where, "orders", range(2, 3))
            assert acknowledge(consumer, lambda _: ACCEPT, bool) == [b"v2"]
        assert said in broker.log()
        if topic is not None:
            assert read(broker, topic) == []


def test_a_topic_that_share_groups_may_use_is_used_by_the_partition_of_the_record() -> None:
    with KafkaBroker(topics={"orders": 5}) as broker:
        broker.create_topic("dlq.orders", 2, {"errors.deadletterqueue.group.enable": "true"})
        where = broker.bootstrap_servers
        configure_group(where, **named(errors_deadletterqueue_copy_record_enable="true"))
        for partition in range(5):
            produce(where, "orders", range(partition, partition + 1), partition=partition)
        with share_consumer(where, "orders") as consumer:
            acknowledge(consumer, lambda _: REJECT, lambda seen: len(seen) == 5)
        found = [(partition, value) for partition, _, value, _ in read(broker, "dlq.orders")]
        assert found == [(0, b"v0"), (0, b"v2"), (0, b"v4"), (1, b"v1"), (1, b"v3")]


def test_a_group_that_names_no_topic_has_no_dead_letters(broker: KafkaBroker) -> None:
    where = broker.bootstrap_servers
    configure_group(where)
    produce(where, "orders", range(2))
    with share_consumer(where, "orders") as consumer:
        acknowledge(consumer, lambda _: REJECT, lambda seen: len(seen) == 2)
    assert dead_letters(where, "dlq.orders") == []
    assert "dead" not in broker.log()
