"""DescribeUserScramCredentials: who the users are, and none of their secrets."""

from __future__ import annotations

from typing import Any

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

from .conftest import Cluster
from .test_alter_user_scram_credentials import alter, user


def described(cluster: Cluster, *names: str) -> dict[str, Any]:
    asked = [UserName(name) for name in names] or None
    answer = cluster.send(DescribeUserScramCredentialsRequest(asked), 0)
    assert answer.error_code == ErrorCode.NONE
    return {
        result.user: result.error_code
        or [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in answer.results
    }


def test_all_users_are_described_with_mechanisms_and_iterations(cluster: Cluster) -> None:
    alter(cluster, [user("alice"), user("bob", 2, 8192)])
    alter(cluster, [user("alice", 2)])
    assert described(cluster) == {"alice": [(1, 4096), (2, 4096)], "bob": [(2, 8192)]}
    assert described(cluster, "bob") == {"bob": [(2, 8192)]}


def test_who_is_asked_for_twice_or_is_not_there_is_an_error(cluster: Cluster) -> None:
    alter(cluster, [user("alice")])
    assert described(cluster, "alice", "alice", "nobody") == {
        "alice": ErrorCode.DUPLICATE_RESOURCE,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
    }
