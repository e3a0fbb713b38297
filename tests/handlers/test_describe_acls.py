"""DescribeAcls."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_acls import DescribeAclsRequest
from kbroker.requests.answers import BadRequest
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

from .conftest import Cluster
from .some_acls import ALICE, AUTHORIZED, CLUSTER, GROUP, TOPIC, allow, as_admin

ANY = 1
ALL_OF_THEM = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)


@pytest.fixture
def settings() -> dict[str, str]:
    return AUTHORIZED


@pytest.fixture
def some(cluster: Cluster) -> None:
    allow(cluster, AclOperation.READ, TOPIC, "orders")
    allow(cluster, AclOperation.WRITE, TOPIC, "orders", who="User:bob", permission=Permission.DENY)
    allow(cluster, AclOperation.READ, TOPIC, "ord", pattern=PatternType.PREFIXED)
    allow(cluster, AclOperation.READ, TOPIC, "*", host="10.0.0.1")
    allow(cluster, AclOperation.READ, GROUP, "orders")


def found(cluster: Cluster, *filter_: object, version: int = 3) -> set[tuple[int, str, int, str]]:
    answer = as_admin(cluster, DescribeAclsRequest(*filter_), version)  # type: ignore[arg-type]
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        (resource.resource_type, resource.resource_name, resource.pattern_type, acl.principal)
        for resource in answer.resources
        for acl in resource.acls
    }


@pytest.mark.usefixtures("some")
def test_bindings_come_by_the_resource_that_they_speak_of(cluster: Cluster) -> None:
    resources = as_admin(cluster, ALL_OF_THEM).resources
    assert [(each.resource_name, len(each.acls)) for each in resources] == [
        ("orders", 2),
        ("ord", 1),
        ("*", 1),
        ("orders", 1),
    ]
    denied = resources[0].acls[1]
    assert (denied.principal, denied.host, denied.operation, denied.permission_type) == (
        "User:bob",
        "*",
        AclOperation.WRITE,
        Permission.DENY,
    )


LITERAL, PREFIXED, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH


@pytest.mark.usefixtures("some")
@pytest.mark.parametrize(
    ("filter_", "names"),
    [
        ((TOPIC, None, ANY, None, None, ANY, ANY), ["*", "ord", "orders", "orders"]),
        ((TOPIC, "orders", LITERAL, None, None, ANY, ANY), ["orders", "orders"]),
        ((TOPIC, "ord", PREFIXED, None, None, ANY, ANY), ["ord"]),
        ((TOPIC, "ord", ANY, None, None, ANY, ANY), ["ord"]),
        ((TOPIC, "orders", MATCH, None, None, ANY, ANY), ["*", "ord", "orders", "orders"]),
        ((TOPIC, "ordinary", MATCH, None, None, ANY, ANY), ["*", "ord"]),
        ((TOPIC, None, MATCH, None, None, ANY, ANY), ["*", "ord", "orders", "orders"]),
        ((ANY, None, ANY, "User:bob", None, ANY, ANY), ["orders"]),
        ((ANY, None, ANY, None, "10.0.0.1", ANY, ANY), ["*"]),
        ((ANY, None, ANY, None, None, AclOperation.WRITE, ANY), ["orders"]),
        ((ANY, None, ANY, None, None, ANY, Permission.DENY), ["orders"]),
        ((99, None, ANY, None, None, ANY, ANY), []),
    ],
)
def test_a_filter_finds(cluster: Cluster, filter_: tuple[object, ...], names: list[str]) -> None:
    assert sorted(name for _, name, _, _ in found(cluster, *filter_)) == names


@pytest.mark.usefixtures("some")
@pytest.mark.parametrize("version", range(4))
def test_every_version_describes(cluster: Cluster, version: int) -> None:
    wanted = (AclResourceType.GROUP, "orders", LITERAL, None, None, ANY, ANY)
    assert found(cluster, *wanted, version=version) == {(GROUP, "orders", LITERAL, "User:alice")}


def test_who_may_describe_the_cluster_may_describe_acls(cluster: Cluster) -> None:
    cluster.session().principal = ALICE
    refused = cluster.send(ALL_OF_THEM, 3)
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert refused.resources == []
    allow(cluster, AclOperation.DESCRIBE, CLUSTER, "kafka-cluster")
    assert len(cluster.send(ALL_OF_THEM, 3).resources) == 1


def test_a_client_that_sends_unknown_words_is_not_answered(cluster: Cluster) -> None:
    with pytest.raises(BadRequest):
        as_admin(cluster, DescribeAclsRequest(0, None, ANY, None, None, ANY, ANY))


class TestWithoutAnAuthorizer:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"node.id": "1"}

    def test_security_is_disabled(self, cluster: Cluster) -> None:
        assert cluster.send(ALL_OF_THEM, 3).error_code == ErrorCode.SECURITY_DISABLED
