"""Clients that log in to an in-process broker whose listener asks for it."""

from __future__ import annotations

from kbroker.authentication.opening import open_logins
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kbroker.requests.session import Requests

from .conftest import Cluster

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_admin="admin-secret" user_alice="alice-secret";'
)
SETTINGS = {
    "node.id": "1",
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "delegation.token.secret.key": "token-secret",
}


def connect(cluster: Cluster) -> None:
    """A new connection, from which nobody has logged in."""
    requests = Requests(cluster.broker)
    requests.logins = open_logins(cluster.broker)
    session = requests.session("SASL_PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", 54321))
    cluster._connected = (cluster.broker, session)


def log_in(cluster: Cluster, name: str) -> None:
    """The client of the cluster is from now on this user."""
    connect(cluster)
    cluster.send(SaslHandshakeRequest("PLAIN"), 1)
    answer = cluster.send(SaslAuthenticateRequest(f"\0{name}\0{name}-secret".encode()), 2)
    assert answer.error_code == ErrorCode.NONE
