from __future__ import annotations

import pytest

from kbroker.config.dynamic import DynamicConfigs
from kbroker.protocol.errors import ErrorCode
from tests.config.conftest import SlowCatalog

from .config_resources import GROUP, TOPIC, alter, codes, describe


@pytest.fixture(autouse=True)
def topics(cluster):
    cluster.create("orders")
    cluster.create("payments")


@pytest.mark.parametrize(
    ("config", "good", "bad"),
    [
        ("share.auto.offset.reset", "by_duration:PT1H", "sometimes"),
        ("share.isolation.level", "read_committed", "read_all"),
        ("share.renew.acknowledge.enable", "false", "perhaps"),
        ("share.session.timeout.ms", "50000", "44999"),
        ("share.heartbeat.interval.ms", "15000", "15001"),
        ("share.record.lock.duration.ms", "15000", "60001"),
        ("share.delivery.count.limit", "10", "11"),
        ("share.partition.max.record.locks", "4000", "99"),
        ("kbroker.share.retry.backoff.ms", "0", "-1"),
        ("kbroker.share.retry.backoff.multiplier", "1.5", "0.5"),
    ],
)
def test_configs_of_share_groups_are_held_to_their_ranges(cluster, config, good, bad):
    (taken,) = alter(cluster, (GROUP, "g", [(config, 0, good)])).responses
    (refused,) = alter(cluster, (GROUP, "g", [(config, 0, bad)])).responses
    assert (taken.error_code, refused.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_CONFIG)
    (result,) = describe(cluster, (GROUP, "g", None))
    assert {each.name: each.value for each in result.configs}[config] == good


def test_altering_answers_each_resource_for_itself(cluster):
    response = alter(
        cluster,
        (TOPIC, "orders", [("retention.ms", 0, "5")]),
        (TOPIC, "payments", [("retention.ms", 0, "x")]),
        (TOPIC, "gone", []),
    )
    assert codes(response) == ["NONE", "INVALID_CONFIG", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert [answer.error_message is None for answer in response.responses] == [True, False, False]
    assert cluster.broker.topics.get("orders").configs == {"retention.ms": "5"}


def test_a_resource_named_twice_is_refused_at_both_places(cluster):
    response = alter(
        cluster,
        (TOPIC, "orders", [("retention.ms", 0, "5")]),
        (TOPIC, "orders", [("retention.ms", 0, "6")]),
        (TOPIC, "payments", []),
    )
    assert codes(response) == ["INVALID_REQUEST", "INVALID_REQUEST", "NONE"]
    assert response.responses[0].error_message == "The resource is named twice."
    assert cluster.broker.topics.get("orders").configs == {}


def test_the_answer_waits_until_every_change_is_stored(cluster):
    broker = cluster.broker
    store = SlowCatalog()
    broker.dynamic_configs = DynamicConfigs(broker.settings, store, [], broker.topics)
    pending = alter(
        cluster,
        (TOPIC, "orders", [("retention.ms", 0, "5")]),
        (TOPIC, "payments", [("retention.ms", 0, "6")]),
    )
    first, second = store.writes
    second.fail(OSError("no"))
    assert not pending.done
    first.resolve(None)
    assert codes(pending.result()) == ["NONE", "UNKNOWN_SERVER_ERROR"]
