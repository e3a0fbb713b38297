"""Whatever a stranger sends, in whatever order: it is never let in, and nothing breaks."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbroker.config.sasl_rules import UNSECURED_HANDLER
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kbroker.requests.answers import Deferred
from kbroker.requests.request import logger as dispatch_logger
from tests.handlers import logged_in
from tests.handlers.conftest import Cluster

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", ""]
MESSAGES = st.one_of(
    st.binary(max_size=64),
    st.sampled_from(
        [
            b"\0admin\0guess",
            b"n,,n=admin,r=abc",
            b"n,,n=admin,r=abc,tokenauth=true",
            b"c=biws,r=abc,p=AAAA",
            b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.e30.\x01\x01",
            b"\x01",
        ]
    ),
    st.from_regex(rb"n,(a=[a-z=,]{0,5})?,n=[a-z=2C3D]{0,9},r=[!-~]{0,9}(,[a-z]+=[a-z]+)*", fullmatch=True),
    st.from_regex(rb"c=[A-Za-z0-9+/=]{0,8},r=[!-~]{0,30},p=[A-Za-z0-9+/=]{0,48}", fullmatch=True),
)


def frame(request: object, version: int) -> bytes:
    key = type(request).__schema__.api_key  # type: ignore[attr-defined]
    head = encode_bytes(RequestHeader(key, version, 7, "fuzz"), request_header_version(key, version))
    return head + encode_bytes(request, version)


FRAMES = st.one_of(
    st.binary(max_size=80),
    st.builds(lambda v: frame(ApiVersionsRequest("x", "1"), v), st.integers(3, 4)),
    st.builds(lambda m, v: frame(SaslHandshakeRequest(m), v), st.sampled_from(MECHANISMS), st.integers(0, 1)),
    st.builds(lambda m, v: frame(SaslAuthenticateRequest(m), v), MESSAGES, st.integers(0, 2)),
    st.just(frame(MetadataRequest(None), 12)),
    MESSAGES,
)
SETTINGS = logged_in.SETTINGS | {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": UNSECURED_HANDLER,
}


@pytest.fixture(scope="module")
def broker() -> Cluster:
    return Cluster(SETTINGS)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(frames=st.lists(FRAMES, min_size=1, max_size=6))
def test_a_stranger_stays_outside(broker: Cluster, frames: list[bytes]) -> None:
    logged_in.connect(broker)
    session = broker.session()
    complaints: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = complaints.append  # type: ignore[method-assign]
    dispatch_logger.addHandler(handler)
    try:
        for each in frames:
            answer = session.execute(memoryview(bytearray(each)), broker.now_ms)
            assert not session.authenticated
            if isinstance(answer, Deferred) and not answer.answer.done:
                break  # it ends, after a while
    finally:
        dispatch_logger.removeHandler(handler)
        broker.scheduler.waiting.clear()
    assert complaints == []
