"""RenewDelegationToken: later, but not later than the token's life."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

from . import logged_in
from .conftest import NOW_MS, Cluster
from .logged_in import log_in
from .some_tokens import DAY_MS, create, renew


@pytest.fixture
def settings() -> dict[str, str]:
    return logged_in.SETTINGS


@pytest.mark.parametrize("version", [0, 1, 2])
def test_owner_and_renewers_put_off_the_end(cluster: Cluster, version: int) -> None:
    log_in(cluster, "alice")
    token = create(cluster, "admin")
    cluster.now_ms += 1000
    for name, period_ms, expires_ms in (
        ("alice", -1, NOW_MS + 1000 + DAY_MS),
        ("admin", 5, NOW_MS + 1005),
        ("admin", 1 << 60, NOW_MS + 1000 + DAY_MS),
    ):
        log_in(cluster, name)
        answer = cluster.send(RenewDelegationTokenRequest(token.hmac, period_ms), version)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (0, expires_ms)


def test_others_do_not(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    token = create(cluster)
    log_in(cluster, "admin")
    assert renew(cluster, token.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_what_has_expired_or_never_was_is_not_renewed(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    token = create(cluster, max_lifetime_ms=1000)
    cluster.now_ms += 1001
    assert renew(cluster, token.hmac).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert renew(cluster, b"?").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
