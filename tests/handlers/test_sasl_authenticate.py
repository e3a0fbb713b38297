"""SaslAuthenticate: outside of a login it is refused, within one it lets the client in."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kbroker.security.principal import Principal

from . import logged_in
from .conftest import Cluster
from .logged_in import connect, log_in

ALICE = b"\0alice\0alice-secret"


@pytest.fixture
def settings() -> dict[str, str]:
    return logged_in.SETTINGS


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_right_password_opens_the_session(cluster: Cluster, version: int) -> None:
    connect(cluster)
    cluster.send(SaslHandshakeRequest("PLAIN"), 1)
    answer = cluster.send(SaslAuthenticateRequest(ALICE), version)
    assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE, b"")
    assert cluster.session().authenticated
    assert cluster.session().principal == Principal("User", "alice")


def test_where_nobody_has_to_log_in_it_is_refused(cluster: Cluster) -> None:
    answer = cluster.send(SaslAuthenticateRequest(ALICE), 2)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_who_is_logged_in_is_refused_and_stays(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    answer = cluster.send(SaslAuthenticateRequest(ALICE), 2)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert cluster.session().principal == Principal("User", "alice")
