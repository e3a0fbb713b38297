"""Clients that log in with a password, through the proxy, to a real Apache Kafka: nobody reads it."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from compat.harness.kafka import RealKafka
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.wire.golden import framed
from tests.wire.proxy_process import proxy
from tests.wire.test_frames import request_frame

pytestmark = pytest.mark.java

PASSWORD = "hunter2-is-no-secret"
LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="admin" password="{PASSWORD}" user_admin="{PASSWORD}";'
)
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": LOGIN,
}


@pytest.fixture(scope="module")
def kafka_with_passwords() -> Iterator[RealKafka]:
    with RealKafka(SETTINGS) as running:
        yield running


def test_a_login_goes_through_and_is_not_shown(kafka_with_passwords: RealKafka) -> None:
    with proxy(kafka_with_passwords.bootstrap, "--json", "--verbose", "--payloads", "--full") as running:
        login = {
            "bootstrap.servers": running.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": PASSWORD,
        }
        producer = Producer(login)
        producer.produce("orders", b"from librdkafka")
        assert producer.flush(60) == 0
        other = KafkaProducer(
            bootstrap_servers=running.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="admin",
            sasl_plain_password=PASSWORD,
        )
        other.send("orders", b"from kafka-python").get(timeout=60)
        other.close(timeout=30)
        consumer = Consumer({**login, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        got: list[bytes] = []
        while len(got) < 2:
            got += [message.value() for message in consumer.consume(10, 1) if not message.error()]
        consumer.close()
        assert running.stop() == 0
        output = running.output
        frames = [frame for frame in running.objects if "direction" in frame]
    assert got == [b"from librdkafka", b"from kafka-python"]
    assert [frame for frame in frames if "problem" in frame] == []
    logins = [
        frame for frame in frames if frame["api"] == "SaslAuthenticate" and frame["direction"] == "request"
    ]
    assert logins
    assert {frame["fields"]["auth_bytes"] for frame in logins} == {"<hidden>"}
    token = f"\0admin\0{PASSWORD}".encode()
    for secret in (PASSWORD, token.hex(), base64.b64encode(token).decode()):
        assert secret not in output
    assert "from librdkafka" in output  # payloads were asked for


def test_a_login_with_tokens_without_a_header(kafka_with_passwords: RealKafka) -> None:
    """As clients did before SaslAuthenticate: a handshake of version 0, then the token in a bare frame."""
    with proxy(kafka_with_passwords.bootstrap) as running:
        host, _, port = running.bootstrap.partition(":")
        with socket.create_connection((host, int(port)), 30) as client, client.makefile("rb") as answers:

            def ask(frame: bytes) -> bytes:
                client.sendall(framed(frame))
                return answers.read(int.from_bytes(answers.read(4), "big"))

            ask(request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 0))
            assert ask(f"\0admin\0{PASSWORD}".encode()) == b""
            assert running.bootstrap.partition(":")[0].encode() in ask(request_frame(MetadataRequest(), 12))
        running.wait_for("← Metadata v12")
        lines = [line.split(" ", 2)[2] for line in running.output.splitlines()]
    assert [line.split()[1] for line in lines[1:7]] == ["SaslHandshake"] * 2 + ["SASL"] * 2 + ["Metadata"] * 2
    assert PASSWORD not in "".join(lines)
