from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

from .conftest import Cluster
from .quota_requests import ANY, DEFAULT, EXACT, alter, ask, found

ENTITIES: tuple[dict[str, str | None], ...] = (
    {"user": "alice"},
    {"user": None},
    {"user": "alice", "client-id": "a"},
    {"user": "alice", "client-id": None},
    {"client-id": "a"},
    {"ip": "10.0.0.1"},
    {"ip": None},
)


@pytest.fixture
def quotas(cluster: Cluster) -> None:
    for entity in ENTITIES:
        name = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
        assert alter(cluster, entity, **{name: 5}) == ErrorCode.NONE


def entities(cluster: Cluster, *components: ComponentData, strict: bool = False) -> list[int]:
    """By their place in ENTITIES."""
    answer = ask(cluster, *components, strict=strict)
    return sorted(ENTITIES.index(entity) for entity, _ in found(answer))


@pytest.mark.usefixtures("quotas")
def test_a_filter_finds_what_has_all_its_components(cluster: Cluster) -> None:
    assert entities(cluster) == [0, 1, 2, 3, 4, 5, 6]
    assert entities(cluster, ComponentData("user", EXACT, "alice")) == [0, 2, 3]
    assert entities(cluster, ComponentData("user", DEFAULT, None)) == [1]
    assert entities(cluster, ComponentData("user", ANY, None)) == [0, 1, 2, 3]
    assert entities(cluster, ComponentData("user", ANY, None), ComponentData("client-id", DEFAULT, None)) == [
        3
    ]
    assert entities(cluster, ComponentData("ip", ANY, None)) == [5, 6]


@pytest.mark.usefixtures("quotas")
def test_a_strict_filter_finds_what_has_no_other_components(cluster: Cluster) -> None:
    assert entities(cluster, ComponentData("user", ANY, None), strict=True) == [0, 1]
    assert entities(cluster, strict=True) == []


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([ComponentData("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", ANY, None), ComponentData("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([ComponentData("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", DEFAULT, "alice")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", ANY, "alice")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("ip", ANY, None), ComponentData("user", ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_a_filter_is_refused(
    cluster: Cluster, components: list[ComponentData], code: ErrorCode, version: int
) -> None:
    answer = cluster.send(DescribeClientQuotasRequest(components), version)
    assert answer.error_code == code
    assert answer.entries is None
