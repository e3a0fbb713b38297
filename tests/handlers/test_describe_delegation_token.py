"""DescribeDelegationToken: one's own tokens, and those of others as far as that is allowed."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)

from . import logged_in
from .conftest import Cluster
from .logged_in import log_in
from .some_tokens import create, token_ids
from .test_resources import NobodyMay


@pytest.fixture
def settings() -> dict[str, str]:
    return logged_in.SETTINGS


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_token_is_described_as_it_was_created(cluster: Cluster, version: int) -> None:
    log_in(cluster, "alice")
    created = create(cluster, "bob")
    (token,) = cluster.send(DescribeDelegationTokenRequest(None), version).tokens
    assert (token.token_id, token.hmac, token.principal_name) == (created.token_id, created.hmac, "alice")
    assert [renewer.principal_name for renewer in token.renewers] == ["bob"]


def test_tokens_of_others_are_for_who_may_see_them(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    own, renewable = create(cluster), create(cluster, "admin")
    log_in(cluster, "admin")
    assert token_ids(cluster) == [own.token_id, renewable.token_id]
    cluster.broker.authorizer = NobodyMay()
    assert token_ids(cluster) == [renewable.token_id]


def test_those_of_some_owners_can_be_asked_for(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    create(cluster)
    for owners, count in ((["alice"], 1), (["bob"], 0), ([], 0)):
        asked = [DescribeDelegationTokenOwner("User", owner) for owner in owners]
        assert len(cluster.send(DescribeDelegationTokenRequest(asked), 3).tokens) == count


def test_nobody_sees_any_without_a_login(cluster: Cluster) -> None:
    answer = cluster.send(DescribeDelegationTokenRequest(None), 3)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
