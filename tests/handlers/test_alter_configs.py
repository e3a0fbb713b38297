from __future__ import annotations

import pytest

from kbroker.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

from .config_resources import LOGGER, TOPIC, alter, codes


@pytest.fixture(autouse=True)
def topics(cluster):
    cluster.create("orders")
    cluster.create("payments")


def test_the_legacy_request_replaces_all_configs(cluster):
    alter(cluster, (TOPIC, "orders", [("flush.ms", 0, "5")]))
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(TOPIC, "orders", [AlterableConfig("retention.ms", "9")]),
            AlterConfigsResource(TOPIC, "payments", [AlterableConfig("retention.ms", None)]),
            AlterConfigsResource(LOGGER, "1", [AlterableConfig("root", "INFO")]),
        ]
    )
    response = cluster.send(request, 2)
    assert codes(response) == ["NONE", "INVALID_REQUEST", "INVALID_REQUEST"]
    assert [answer.error_message for answer in response.responses[1:]] == [
        "retention.ms: the value is missing",
        "Resources of type 8 have no configs to alter.",
    ]
    assert cluster.broker.topics.get("orders").configs == {"retention.ms": "9"}
