"""ExpireDelegationToken: sooner, or at once."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest

from . import logged_in
from .conftest import NOW_MS, Cluster
from .logged_in import log_in
from .some_tokens import create, expire, token_ids


@pytest.fixture
def settings() -> dict[str, str]:
    return logged_in.SETTINGS


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_token_expires_when_its_owner_says(cluster: Cluster, version: int) -> None:
    log_in(cluster, "alice")
    token = create(cluster)
    answer = cluster.send(ExpireDelegationTokenRequest(token.hmac, 500), version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, NOW_MS + 500)
    cluster.now_ms += 501
    assert expire(cluster, token.hmac, 5).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(cluster, token.hmac).error_code == 0
    assert expire(cluster, token.hmac).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert token_ids(cluster) == []


def test_others_end_nothing(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    token = create(cluster)
    log_in(cluster, "admin")
    assert expire(cluster, token.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_what_has_expired_is_swept(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    create(cluster, max_lifetime_ms=1000)
    kept = create(cluster)
    assert len(token_ids(cluster)) == 2
    cluster.now_ms += 1001
    cluster.broker.delegation_tokens.sweep(cluster.now_ms)
    assert token_ids(cluster) == [kept.token_id]
