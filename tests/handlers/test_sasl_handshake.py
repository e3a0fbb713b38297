"""SaslHandshake: which mechanisms there are, and what may not come before and after it."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest

from . import logged_in
from .conftest import Cluster
from .logged_in import connect, log_in


@pytest.fixture
def settings() -> dict[str, str]:
    return logged_in.SETTINGS


@pytest.mark.parametrize("version", [0, 1])
def test_a_mechanism_that_is_offered_is_taken(cluster: Cluster, version: int) -> None:
    connect(cluster)
    answer = cluster.send(SaslHandshakeRequest("PLAIN"), version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def test_where_nobody_has_to_log_in_there_is_no_handshake(cluster: Cluster) -> None:
    assert cluster.send(SaslHandshakeRequest("PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_who_is_logged_in_needs_no_handshake(cluster: Cluster) -> None:
    log_in(cluster, "alice")
    assert cluster.send(SaslHandshakeRequest("PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert cluster.send(MetadataRequest(None), 12).brokers


def test_versions_may_be_asked_for_once_before_it(cluster: Cluster) -> None:
    connect(cluster)
    asked = ApiVersionsRequest("test", "1")
    assert cluster.send(ApiVersionsRequest("?", "?"), 3).error_code == ErrorCode.INVALID_REQUEST
    assert cluster.send(asked, 3).error_code == ErrorCode.NONE
    session = cluster.session()
    assert session.authenticated is False
    assert session.client_software == ("test", "1")
