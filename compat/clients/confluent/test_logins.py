"""librdkafka logs in by every mechanism that it has, and tells the same error as with a real Kafka."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from compat.harness import sasl
from compat.harness.sasl import ALICE, SaslServer
from compat.harness.waiting import eventually

INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
REFUSALS = {
    "PLAIN": "Authentication failed: Invalid username or password",
    "SCRAM-SHA-256": INVALID + "SCRAM-SHA-256",
    "SCRAM-SHA-512": INVALID + "SCRAM-SHA-512",
}


def login(
    server: SaslServer, mechanism: str, name: str = ALICE[0], password: str = ALICE[1]
) -> dict[str, Any]:
    return {
        "bootstrap.servers": server.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(server.ca),
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
    }


def round_trip(configs: dict[str, Any], topic: str) -> None:
    producer = Producer(configs)
    producer.produce(topic, b"from who is logged in")
    assert producer.flush(30) == 0
    consumer = Consumer({**configs, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got: list[bytes] = []
    deadline = time.monotonic() + 60
    while not got and time.monotonic() < deadline:
        got += [message.value() for message in consumer.consume(1, 1) if not message.error()]
    consumer.close()
    assert got == [b"from who is logged in"]


def errors_of(configs: dict[str, Any]) -> list[KafkaError]:
    errors: list[KafkaError] = []
    producer = Producer({**configs, "error_cb": errors.append})
    eventually(lambda: producer.poll(0.1) >= 0 and bool(errors))
    return errors


@pytest.mark.parametrize("mechanism", REFUSALS)
def test_a_password_lets_it_in(sasl_server: SaslServer, topic: str, mechanism: str) -> None:
    round_trip(login(sasl_server, mechanism), topic)


def bearer_login(server: SaslServer, **claims: Any) -> dict[str, Any]:
    def token(_: str) -> tuple[str, float]:
        return sasl.unsecured_token(**claims), time.time() + 600

    return {
        "bootstrap.servers": server.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(server.ca),
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
        "log_level": 0,
    }


def test_a_token_lets_it_in(sasl_server: SaslServer, topic: str) -> None:
    round_trip(bearer_login(sasl_server), topic)


def test_an_expired_token_does_not(sasl_server: SaslServer) -> None:
    (error, *_) = errors_of(bearer_login(sasl_server, iat=1, exp=2))
    assert error.code() == KafkaError._AUTHENTICATION
    assert '{"status":"invalid_token"}' in error.str()


@pytest.mark.parametrize("name", ["alice", "nobody"])
@pytest.mark.parametrize("mechanism", REFUSALS)
def test_a_wrong_password_and_an_unknown_user_are_told_the_same(
    sasl_server: SaslServer, mechanism: str, name: str
) -> None:
    (error, *_) = errors_of(login(sasl_server, mechanism, name, "wrong"))
    assert error.code() == KafkaError._AUTHENTICATION
    assert REFUSALS[mechanism] in error.str()


def test_a_mechanism_that_is_not_offered(sasl_server: SaslServer) -> None:
    configs = login(sasl_server, "PLAIN") | {"sasl.mechanism": "SCRAM-SHA-1"}
    (error, *_) = errors_of(configs)
    assert "Unsupported SASL mechanism" in error.str()


def test_users_are_made_by_its_admin_client(sasl_server: SaslServer, topic: str) -> None:
    admin = AdminClient(login(sasl_server, "PLAIN"))
    name = f"user-of-{topic}"
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    for made in admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion(name, info, b"pw")]
    ).values():
        made.result(30)
    described = admin.describe_user_scram_credentials([name])[name].result(30)
    assert [each.iterations for each in described.scram_credential_infos] == [4096]
    round_trip(login(sasl_server, "SCRAM-SHA-256", name, "pw"), topic)
    deletion = UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_256)
    for gone in admin.alter_user_scram_credentials([deletion]).values():
        gone.result(30)
    assert errors_of(login(sasl_server, "SCRAM-SHA-256", name, "pw"))
