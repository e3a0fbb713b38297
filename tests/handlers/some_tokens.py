"""Delegation tokens of a test."""

from __future__ import annotations

from typing import Any

from kbroker.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from kbroker.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kbroker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kbroker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

from .conftest import Cluster

DAY_MS = 86_400_000


def create(
    cluster: Cluster, *renewers: str, max_lifetime_ms: int = -1, owner: str | None = None, version: int = 3
) -> Any:
    return cluster.send(
        CreateDelegationTokenRequest(
            None if owner is None else "User",
            owner,
            [CreatableRenewers("User", renewer) for renewer in renewers],
            max_lifetime_ms,
        ),
        version,
    )


def renew(cluster: Cluster, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    return cluster.send(RenewDelegationTokenRequest(hmac, period_ms), version)


def expire(cluster: Cluster, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    return cluster.send(ExpireDelegationTokenRequest(hmac, period_ms), version)


def token_ids(cluster: Cluster, version: int = 3) -> list[str]:
    answer = cluster.send(DescribeDelegationTokenRequest(None), version)
    assert answer.error_code == 0
    return [token.token_id for token in answer.tokens]
