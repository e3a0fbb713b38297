"""CreateAcls."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kbroker.requests.answers import BadRequest
from kbroker.security.acl_bindings import AclBinding
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

from .conftest import Cluster
from .some_acls import ALICE, AUTHORIZED, CLUSTER, TOPIC, allow, as_admin, creation

READ, ALTER, WRITE = AclOperation.READ, AclOperation.ALTER, AclOperation.WRITE
GOOD = creation(READ, TOPIC, "t")


@pytest.fixture
def settings() -> dict[str, str]:
    return AUTHORIZED


def stored(cluster: Cluster) -> list[AclBinding]:
    assert cluster.broker.authorizer is not None
    return list(cluster.broker.authorizer.acls)


@pytest.mark.parametrize("version", range(4))
def test_a_binding_is_there_when_it_is_answered_and_after_a_restart(cluster: Cluster, version: int) -> None:
    (result,) = as_admin(cluster, CreateAclsRequest([GOOD]), version).results
    assert (result.error_code, result.error_message) == (0, "")
    expected = AclBinding(TOPIC, "t", PatternType.LITERAL, "User:alice", "*", READ, Permission.ALLOW)
    assert stored(cluster) == [expected]
    cluster.broker = cluster.start(AUTHORIZED)
    assert stored(cluster) == [expected]


def test_one_that_is_there_already_is_fine(cluster: Cluster) -> None:
    answer = as_admin(cluster, CreateAclsRequest([GOOD, GOOD]))
    assert [result.error_code for result in answer.results] == [0, 0]
    assert as_admin(cluster, CreateAclsRequest([GOOD])).results[0].error_code == 0
    assert len(stored(cluster)) == 1


@pytest.mark.parametrize(
    "bad",
    [
        creation(READ, TOPIC, ""),
        creation(READ, CLUSTER, "cluster"),
        creation(READ, 99, "t"),  # type: ignore[arg-type]
        creation(99, TOPIC, "t"),  # type: ignore[arg-type]
        creation(READ, TOPIC, "t", pattern=99),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused_and_the_rest_stored(cluster: Cluster, bad: object) -> None:
    answer = as_admin(cluster, CreateAclsRequest([bad, GOOD]))  # type: ignore[list-item]
    assert [result.error_code for result in answer.results] == [ErrorCode.INVALID_REQUEST, 0]
    assert answer.results[0].error_message
    assert len(stored(cluster)) == 1


@pytest.mark.parametrize(
    "bad",
    [
        creation(READ, AclResourceType.ANY, "t"),
        creation(AclOperation.ANY, TOPIC, "t"),
        creation(READ, TOPIC, "t", pattern=PatternType.ANY),
        creation(READ, TOPIC, "t", pattern=PatternType.MATCH),
        creation(READ, TOPIC, "t", permission=Permission.ANY),
    ],
)
def test_what_only_filters_say_spoils_the_whole_request(cluster: Cluster, bad: AclCreation) -> None:
    answer = as_admin(cluster, CreateAclsRequest([bad, GOOD]))
    assert {result.error_code for result in answer.results} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert stored(cluster) == []


def test_a_client_that_sends_unknown_words_is_not_answered(cluster: Cluster) -> None:
    with pytest.raises(BadRequest):
        as_admin(cluster, CreateAclsRequest([creation(AclOperation.UNKNOWN, TOPIC, "t")]))


def test_who_may_alter_the_cluster_may_create_acls(cluster: Cluster) -> None:
    cluster.session().principal = ALICE
    (refused,) = cluster.send(CreateAclsRequest([GOOD]), 3).results
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allow(cluster, ALTER, CLUSTER, "kafka-cluster")
    assert cluster.send(CreateAclsRequest([GOOD]), 3).results[0].error_code == 0


def test_ten_thousand_are_the_most_of_a_request(cluster: Cluster) -> None:
    many = [creation(WRITE, TOPIC, f"t{number}") for number in range(10_001)]
    answer = as_admin(cluster, CreateAclsRequest(many))
    assert {result.error_code for result in answer.results} == {ErrorCode.POLICY_VIOLATION}
    assert stored(cluster) == []


class TestWithoutAnAuthorizer:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"node.id": "1"}

    def test_security_is_disabled(self, cluster: Cluster) -> None:
        (result,) = cluster.send(CreateAclsRequest([GOOD]), 3).results
        assert result.error_code == ErrorCode.SECURITY_DISABLED
