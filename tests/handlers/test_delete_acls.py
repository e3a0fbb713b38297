"""DeleteAcls."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_acls import CreateAclsRequest
from kbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kbroker.requests.answers import BadRequest
from kbroker.security.acls import AclOperation, PatternType

from .conftest import Cluster
from .some_acls import ALICE, AUTHORIZED, CLUSTER, GROUP, TOPIC, allow, as_admin, creation

READ = AclOperation.READ
ANY = 1
ALL_OF_THEM = DeleteAclsFilter(ANY, None, ANY, None, None, ANY, ANY)
TOPICS = DeleteAclsFilter(TOPIC, None, ANY, None, None, ANY, ANY)
UNKNOWN = DeleteAclsFilter(99, None, ANY, None, None, ANY, ANY)


@pytest.fixture
def settings() -> dict[str, str]:
    return AUTHORIZED


def names(cluster: Cluster) -> list[str]:
    assert cluster.broker.authorizer is not None
    return [binding.resource_name for binding in cluster.broker.authorizer.acls]


@pytest.mark.parametrize("version", range(4))
def test_what_a_filter_finds_is_gone_also_after_a_restart(cluster: Cluster, version: int) -> None:
    allow(cluster, READ, TOPIC, "t")
    allow(cluster, READ, GROUP, "g")
    literal_topics = DeleteAclsFilter(TOPIC, None, PatternType.LITERAL, None, None, ANY, ANY)
    (result,) = as_admin(cluster, DeleteAclsRequest([literal_topics]), version).filter_results
    (gone,) = result.matching_acls
    assert (result.error_code, gone.error_code, gone.resource_name) == (0, 0, "t")
    assert names(cluster) == ["g"]
    cluster.broker = cluster.start(AUTHORIZED)
    assert names(cluster) == ["g"]


def test_what_two_filters_find_is_told_twice(cluster: Cluster) -> None:
    allow(cluster, READ, TOPIC, "t", pattern=PatternType.PREFIXED)
    first, second = as_admin(cluster, DeleteAclsRequest([ALL_OF_THEM, TOPICS])).filter_results
    assert len(first.matching_acls) == len(second.matching_acls) == 1
    assert first.matching_acls[0].pattern_type == PatternType.PREFIXED
    assert names(cluster) == []


def test_a_filter_that_makes_no_sense_is_refused_alone(cluster: Cluster) -> None:
    allow(cluster, READ, TOPIC, "t")
    bad, good = as_admin(cluster, DeleteAclsRequest([UNKNOWN, TOPICS])).filter_results
    assert (bad.error_code, good.error_code) == (ErrorCode.INVALID_REQUEST, 0)
    assert names(cluster) == []


def test_who_may_alter_the_cluster_may_delete_acls(cluster: Cluster) -> None:
    cluster.session().principal = ALICE
    (refused,) = cluster.send(DeleteAclsRequest([ALL_OF_THEM]), 3).filter_results
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allow(cluster, AclOperation.ALTER, CLUSTER, "kafka-cluster")
    assert cluster.send(DeleteAclsRequest([ALL_OF_THEM]), 3).filter_results[0].error_code == 0
    assert names(cluster) == []


def test_a_client_that_sends_unknown_words_is_not_answered(cluster: Cluster) -> None:
    with pytest.raises(BadRequest):
        as_admin(cluster, DeleteAclsRequest([DeleteAclsFilter(0, None, ANY, None, None, ANY, ANY)]))


def test_ten_thousand_are_the_most_of_a_request(cluster: Cluster) -> None:
    for first in (0, 6000):
        some = [creation(READ, TOPIC, f"t{number}") for number in range(first, first + 6000)]
        as_admin(cluster, CreateAclsRequest(some))
    (refused,) = as_admin(cluster, DeleteAclsRequest([ALL_OF_THEM])).filter_results
    assert refused.error_code != 0
    assert len(names(cluster)) == 12_000


class TestWithoutAnAuthorizer:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"node.id": "1"}

    def test_security_is_disabled(self, cluster: Cluster) -> None:
        (result,) = cluster.send(DeleteAclsRequest([ALL_OF_THEM]), 3).filter_results
        assert result.error_code == ErrorCode.SECURITY_DISABLED
