"""librdkafka over TLS."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from compat.harness.tls import TlsServer, librdkafka_configs
from tests.support.certificates import Certificates


def round_trip(server: TlsServer, topic: str, configs: dict[str, Any]) -> None:
    configs = {"bootstrap.servers": server.tls_bootstrap, **configs}
    values = [b"%d" % number + bytes(3000) for number in range(1000)]
    producer = Producer(configs)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    consumer = Consumer({**configs, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes | None] = []
    deadline = time.monotonic() + 30
    while len(found) < len(values) and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(500, 1) if message.error() is None]
    consumer.close()
    assert found == values


def version_spoken(server: TlsServer, certificates: Certificates) -> str | None:
    host, _, port = server.tls_bootstrap.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=20) as plain,
        certificates.client_context().wrap_socket(plain, server_hostname=host) as secured,
    ):
        return secured.version()


def test_records_go_there_and_back_over_every_version(
    one_version_tls_server: TlsServer, topic: str, certificates: Certificates, tls_version: str
) -> None:
    assert version_spoken(one_version_tls_server, certificates) == tls_version
    round_trip(one_version_tls_server, topic, librdkafka_configs(certificates))


@pytest.mark.parametrize("suites", ["ECDHE-ECDSA-AES128-GCM-SHA256", "DEFAULT"])
def test_a_client_that_names_cipher_suites_is_let_in(
    tls_server: TlsServer, topic: str, certificates: Certificates, suites: str
) -> None:
    round_trip(tls_server, topic, {**librdkafka_configs(certificates), "ssl.cipher.suites": suites})


def test_a_client_with_a_certificate_is_let_in(
    mutual_tls_server: TlsServer, topic: str, certificates: Certificates
) -> None:
    round_trip(mutual_tls_server, topic, librdkafka_configs(certificates, certificates.client))


def refusal(server: TlsServer, configs: dict[str, Any]) -> int:
    """The error that the client tells of."""
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": server.tls_bootstrap, **configs, "error_cb": errors.append})
    deadline = time.monotonic() + 20
    while not errors and time.monotonic() < deadline:
        producer.poll(0.1)
    return errors[0].code()


def test_a_client_without_a_certificate_is_refused(
    mutual_tls_server: TlsServer, certificates: Certificates
) -> None:
    told = refusal(mutual_tls_server, librdkafka_configs(certificates))
    assert told in (KafkaError._SSL, KafkaError._TRANSPORT)


def test_a_client_with_a_certificate_of_another_authority_is_refused(
    mutual_tls_server: TlsServer, certificates: Certificates, strangers: Certificates
) -> None:
    told = refusal(mutual_tls_server, librdkafka_configs(certificates, strangers.client))
    assert told in (KafkaError._SSL, KafkaError._TRANSPORT)


def test_a_client_that_trusts_another_authority_refuses(
    tls_server: TlsServer, strangers: Certificates
) -> None:
    assert refusal(tls_server, librdkafka_configs(strangers)) == KafkaError._SSL
