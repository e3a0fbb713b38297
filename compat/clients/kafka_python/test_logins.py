"""kafka-python logs in by every mechanism that it has, and is refused with a wrong password."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from compat.harness import sasl
from compat.harness.sasl import ALICE, SaslServer

WITH_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Tokens(AbstractTokenProvider):
    def __init__(self, **claims: Any) -> None:
        self._claims = claims

    def token(self) -> str:
        return sasl.unsecured_token(**self._claims)


def login(server: SaslServer, mechanism: str, password: str = ALICE[1], **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": server.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(server.ca),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": ALICE[0],
        "sasl_plain_password": password,
        **more,
    }


def round_trip(configs: dict[str, Any], topic: str) -> None:
    producer = KafkaProducer(**configs)
    producer.send(topic, b"from who is logged in").get(timeout=30)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **configs)
    assert next(iter(consumer)).value == b"from who is logged in"
    consumer.close()


@pytest.mark.parametrize("mechanism", WITH_PASSWORDS)
def test_a_password_lets_it_in(sasl_server: SaslServer, topic: str, mechanism: str) -> None:
    round_trip(login(sasl_server, mechanism), topic)


def test_a_token_lets_it_in(sasl_server: SaslServer, topic: str) -> None:
    round_trip(login(sasl_server, "OAUTHBEARER", sasl_oauth_token_provider=Tokens()), topic)


def send(topic: str, **configs: Any) -> None:
    producer = KafkaProducer(bootstrap_timeout_ms=2000, **configs)
    try:
        producer.send(topic, b"x").get(5)
    finally:
        producer.close(timeout=0)


@pytest.mark.parametrize("mechanism", WITH_PASSWORDS)
def test_a_wrong_password_does_not(sasl_server: SaslServer, topic: str, mechanism: str) -> None:
    with pytest.raises(Exception, match=r"(?i)bootstrap|authentication"):
        send(topic, **login(sasl_server, mechanism, "wrong"))


def test_no_login_at_all_does_not(sasl_server: SaslServer, topic: str) -> None:
    with pytest.raises(Exception, match=r"(?i)bootstrap|timeout|broker"):
        send(topic, bootstrap_servers=sasl_server.bootstrap)
