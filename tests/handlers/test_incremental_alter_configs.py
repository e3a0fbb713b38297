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
    ("config", "value", "kind"),
    [("share.auto.offset.reset", "earliest", "share")],
)
def test_configs_of_groups_that_do_not_exist_here_are_refused(cluster, config, value, kind):
    (refused,) = alter(cluster, (GROUP, "g", [(config, 0, value)])).responses
    assert (ErrorCode(refused.error_code).name, refused.error_message) == (
        "INVALID_CONFIG",
        f"{config}: this broker has no {kind} groups",
    )
    (result,) = describe(cluster, (GROUP, "g", None))
    assert config not in {each.name for each in result.configs}


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
