from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.list_config_resources import ListConfigResourcesRequest

from .config_resources import BROKER, GROUP, LOGGER, METRICS, TOPIC, alter


@pytest.fixture(autouse=True)
def topics(cluster):
    cluster.create("orders")
    cluster.create("payments")


def list_resources(cluster, types, version=1):
    request = ListConfigResourcesRequest(resource_types=types)
    response = cluster.send(request, version)
    return response.error_code, [
        (each.resource_type, each.resource_name) for each in response.config_resources
    ]


def test_resources_with_configs_are_listed_by_type(cluster):
    alter(cluster, (GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")]))
    alter(cluster, (METRICS, "m", [("metrics", 0, "*")]))
    everything = [
        (GROUP, "g"),
        (METRICS, "m"),
        (LOGGER, "1"),
        (BROKER, "1"),
        (TOPIC, "orders"),
        (TOPIC, "payments"),
    ]
    assert list_resources(cluster, []) == (0, everything)
    assert list_resources(cluster, [GROUP, TOPIC, GROUP]) == (
        0,
        [(GROUP, "g"), (TOPIC, "orders"), (TOPIC, "payments")],
    )
    assert list_resources(cluster, [], version=0) == (0, [(METRICS, "m")])


@pytest.mark.parametrize("type_", [0, 1, 99])
def test_listing_an_unknown_type_is_unsupported(cluster, type_):
    assert list_resources(cluster, [type_, TOPIC]) == (ErrorCode.UNSUPPORTED_VERSION, [])
