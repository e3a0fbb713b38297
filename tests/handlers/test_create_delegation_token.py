"""CreateDelegationToken: tokens for who is logged in, and for others if that is allowed."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest

from . import logged_in
from .conftest import NOW_MS, Cluster
from .logged_in import log_in
from .some_tokens import DAY_MS, create, token_ids
from .test_resources import NobodyMay


@pytest.fixture
def settings() -> dict[str, str]:
    return logged_in.SETTINGS


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_token_lives_for_a_day_and_can_be_renewed_for_a_week(cluster: Cluster, version: int) -> None:
    log_in(cluster, "alice")
    request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
    token = cluster.send(request, version)
    assert (token.error_code, token.principal_type, token.principal_name) == (0, "User", "alice")
    times = (token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms)
    assert times == (NOW_MS, NOW_MS + DAY_MS, NOW_MS + 7 * DAY_MS)
    assert len(token.hmac) == 64


def test_it_may_live_shorter(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    token = create(cluster, max_lifetime_ms=1000)
    assert (token.expiry_timestamp_ms, token.max_timestamp_ms) == (NOW_MS + 1000, NOW_MS + 1000)


def test_it_may_be_for_somebody_else(cluster: Cluster) -> None:
    log_in(cluster, "admin")
    token = create(cluster, owner="alice")
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "admin")


def test_one_for_somebody_else_needs_permission(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    cluster.broker.authorizer = NobodyMay()
    assert create(cluster, owner="bob").error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert create(cluster).error_code == 0


def test_only_users_renew(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    request = CreateDelegationTokenRequest(None, None, [CreatableRenewers("Group", "g")], -1)
    assert cluster.send(request, 3).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_nobody_gets_one_without_a_login(cluster: Cluster) -> None:
    answer = create(cluster)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (answer.issue_timestamp_ms, answer.token_id, answer.hmac) == (-1, "", b"")


def test_tokens_outlive_a_restart_and_their_hmacs_are_not_stored(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    token = create(cluster)
    assert token.hmac.hex() not in str(cluster.catalog.snapshot().entries)
    cluster.broker = cluster.start(logged_in.SETTINGS)
    log_in(cluster, "alice")
    assert token_ids(cluster) == [token.token_id]


def test_a_broker_without_a_secret_key_makes_none(cluster: Cluster) -> None:
    without = {name: text for name, text in logged_in.SETTINGS.items() if "secret.key" not in name}
    cluster.broker = cluster.start(without)
    log_in(cluster, "alice")
    assert create(cluster).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
