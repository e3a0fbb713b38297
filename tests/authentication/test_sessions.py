"""Sessions that end: re-authentication (KIP-368), and logins by delegation tokens (KIP-48)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kbroker.requests.answers import BadRequest, Deferred
from kbroker.security.principal import Principal
from tests.authentication.sasl_client import Scram
from tests.handlers import logged_in
from tests.handlers.conftest import Cluster
from tests.handlers.logged_in import connect, log_in
from tests.handlers.some_tokens import create, expire

ALICE = b"\0alice\0alice-secret"
LIFETIME_MS = 10_000


@pytest.fixture
def settings() -> dict[str, str]:
    limit = {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": str(LIFETIME_MS)}
    return logged_in.SETTINGS | limit


def authenticate(cluster: Cluster, message: bytes = ALICE, mechanism: str = "PLAIN") -> Any:
    assert cluster.send(SaslHandshakeRequest(mechanism), 1).error_code == 0
    return cluster.send(SaslAuthenticateRequest(message), 2)


def by_scram(cluster: Cluster, login: Scram) -> Any:
    connect(cluster)
    cluster.send(SaslHandshakeRequest(login.mechanism), 1)
    first = cluster.send(SaslAuthenticateRequest(login.first), 2)
    answer = cluster.send(SaslAuthenticateRequest(login.final(first.auth_bytes)), 2)
    if isinstance(answer, Pending):
        return ended(cluster, answer)
    return answer


def ended(cluster: Cluster, later: Pending[Any]) -> BadRequest:
    """How a connection ends that waits for it."""
    raised: list[BadRequest] = []
    seen = Deferred.framed

    def framed(self: Deferred) -> Any:
        try:
            return seen(self)
        except BadRequest as refusal:
            raised.append(refusal)
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Deferred, "framed", framed)
        cluster.scheduler.waiting.pop()()
    return raised[0]


def test_a_client_that_authenticates_in_time_stays(cluster: Cluster) -> None:
    connect(cluster)
    for _ in range(3):
        assert authenticate(cluster).session_lifetime_ms == LIFETIME_MS
        cluster.now_ms += LIFETIME_MS
        assert cluster.send(MetadataRequest(None), 12).brokers


def test_one_that_does_not_is_closed_with_its_next_request(cluster: Cluster) -> None:
    connect(cluster)
    authenticate(cluster)
    cluster.now_ms += LIFETIME_MS + 1
    with pytest.raises(BadRequest, match="expired"):
        cluster.send(MetadataRequest(None), 12)


def test_it_may_be_late_as_long_as_it_asks_for_nothing_else(cluster: Cluster) -> None:
    connect(cluster)
    authenticate(cluster)
    cluster.now_ms += LIFETIME_MS + 1
    assert authenticate(cluster).error_code == 0


def test_nobody_becomes_somebody_else(cluster: Cluster) -> None:
    connect(cluster)
    authenticate(cluster)
    answer = authenticate(cluster, b"\0admin\0admin-secret")
    assert "Cannot change principals" in str(ended(cluster, answer))
    assert cluster.session().principal == Principal("User", "alice")


def test_the_mechanism_stays_the_same(cluster: Cluster) -> None:
    connect(cluster)
    authenticate(cluster)
    answer = authenticate(cluster, b"n,,n=alice,r=x", "SCRAM-SHA-256")
    assert "another SASL mechanism" in str(ended(cluster, answer))


def test_it_may_be_done_once_a_second(cluster: Cluster) -> None:
    connect(cluster)
    authenticate(cluster)
    authenticate(cluster)
    answer = cluster.send(SaslHandshakeRequest("PLAIN"), 1)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    cluster.now_ms += 1000
    assert authenticate(cluster).error_code == 0


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_in_for_its_owner_until_it_expires(cluster: Cluster, mechanism: str) -> None:
    log_in(cluster, "alice")
    token = create(cluster, max_lifetime_ms=5000)
    password = base64.b64encode(token.hmac).decode()
    login = Scram(mechanism, token.token_id, password, ",tokenauth=true")
    assert by_scram(cluster, login).session_lifetime_ms == 5000
    assert cluster.session().principal == Principal("User", "alice")
    assert create(cluster).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    cluster.now_ms += 5001
    with pytest.raises(BadRequest, match="expired"):
        cluster.send(MetadataRequest(None), 12)
    stolen = Scram(mechanism, token.token_id, password, ",tokenauth=true")
    assert "the proof is wrong" in str(by_scram(cluster, stolen))


def test_a_token_is_no_user_and_one_that_was_ended_is_none(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    token = create(cluster)
    password = base64.b64encode(token.hmac).decode()
    as_user = Scram("SCRAM-SHA-256", token.token_id, password)
    assert "the proof is wrong" in str(by_scram(cluster, as_user))
    log_in(cluster, "alice")
    expire(cluster, token.hmac)
    ended_one = Scram("SCRAM-SHA-256", token.token_id, password, ",tokenauth=true")
    assert "the proof is wrong" in str(by_scram(cluster, ended_one))
