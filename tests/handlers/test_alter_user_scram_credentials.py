"""AlterUserScramCredentials: users come, change and go, as far as the request makes sense."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kbroker.security.scram_credentials import has_password, salted

from .conftest import Cluster

SALT = b"salt-of-a-test"


def user(
    name: str, mechanism: int = 1, iterations: int = 4096, password: str = "secret"
) -> ScramCredentialUpsertion:
    names = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
    hashed = salted(names.get(mechanism, "SCRAM-SHA-256"), password, SALT, max(iterations, 1))
    return ScramCredentialUpsertion(name, mechanism, iterations, SALT, hashed)


def alter(
    cluster: Cluster,
    upsertions: list[ScramCredentialUpsertion] | None = None,
    deletions: list[ScramCredentialDeletion] | None = None,
) -> dict[str, int]:
    """The code of each user."""
    answer = cluster.send(AlterUserScramCredentialsRequest(deletions or [], upsertions or []), 0)
    return {result.user: result.error_code for result in answer.results}


def test_a_user_can_log_in_and_no_password_is_kept(cluster: Cluster) -> None:
    assert alter(cluster, [user("alice"), user("bob", 2)]) == {"alice": 0, "bob": 0}
    (credential,) = cluster.broker.users.credentials("alice").values()
    assert has_password("SCRAM-SHA-256", credential, "secret")
    assert not has_password("SCRAM-SHA-256", credential, "Secret")
    stored = {entry.key: entry.value for entry in cluster.catalog.snapshot().entries}
    assert stored.keys() == {"SCRAM-SHA-256/alice", "SCRAM-SHA-512/bob"}
    assert "secret" not in str(stored)


def test_users_outlive_a_restart(cluster: Cluster, settings: dict[str, str]) -> None:
    alter(cluster, [user("alice"), user("bob")])
    alter(cluster, deletions=[ScramCredentialDeletion("bob", 1)])
    cluster.broker = cluster.start(settings)
    assert cluster.broker.users.names() == ["alice"]


@pytest.mark.parametrize(
    ("upsertion", "code"),
    [
        (user(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (user("alice", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (user("alice", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (user("alice", mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (user("alice", mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_a_user_that_cannot_be_is_refused_and_others_are_made(
    cluster: Cluster, upsertion: ScramCredentialUpsertion, code: ErrorCode
) -> None:
    assert alter(cluster, [upsertion, user("bob")]) == {upsertion.name: code, "bob": 0}
    assert cluster.broker.users.names() == ["bob"]


def test_a_user_is_altered_once_in_a_request(cluster: Cluster) -> None:
    assert alter(cluster, [user("alice"), user("alice", 2)]) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert alter(cluster, [user("alice")]) == {"alice": 0}
    deletion = ScramCredentialDeletion("alice", 1)
    assert alter(cluster, [user("alice")], [deletion]) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert cluster.broker.users.names() == ["alice"]


def test_what_is_not_there_cannot_be_deleted(cluster: Cluster) -> None:
    alter(cluster, [user("alice")])
    deletion = ScramCredentialDeletion("alice", 2)
    assert alter(cluster, deletions=[deletion]) == {"alice": ErrorCode.RESOURCE_NOT_FOUND}
