"""kafka-python over TLS."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from compat.harness.tls import TlsServer, kafka_python_configs
from tests.support.certificates import Certificates


def round_trip(server: TlsServer, topic: str, configs: dict[str, Any]) -> None:
    configs = {"bootstrap_servers": server.tls_bootstrap, **configs}
    values = [b"%d" % number + bytes(3000) for number in range(300)]
    producer = KafkaProducer(**configs, max_block_ms=20_000)
    try:
        for value in values:
            producer.send(topic, value)
        producer.flush(30)
    finally:
        producer.close(timeout=5)
    consumer = KafkaConsumer(
        topic, **configs, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    try:
        assert [next(consumer).value for _ in values] == values
    finally:
        consumer.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_records_go_there_and_back_over_every_version(
    tls_server: TlsServer, topic: str, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    context = certificates.client_context(version=version)
    round_trip(tls_server, topic, {"security_protocol": "SSL", "ssl_context": context})


def test_a_client_with_a_certificate_is_let_in(
    mutual_tls_server: TlsServer, topic: str, certificates: Certificates
) -> None:
    round_trip(mutual_tls_server, topic, kafka_python_configs(certificates, certificates.client))


def refused(server: TlsServer, configs: dict[str, Any]) -> None:
    with pytest.raises(KafkaError):
        KafkaProducer(
            bootstrap_servers=server.tls_bootstrap, bootstrap_timeout_ms=3000, max_block_ms=3000, **configs
        ).send("nothing", b"").get(5)


def test_a_client_without_a_certificate_is_refused(
    mutual_tls_server: TlsServer, certificates: Certificates
) -> None:
    refused(mutual_tls_server, kafka_python_configs(certificates))


def test_a_client_with_a_certificate_of_another_authority_is_refused(
    mutual_tls_server: TlsServer, certificates: Certificates, strangers: Certificates
) -> None:
    refused(mutual_tls_server, kafka_python_configs(certificates, strangers.client))


def test_a_client_that_trusts_another_authority_refuses(
    tls_server: TlsServer, strangers: Certificates
) -> None:
    refused(tls_server, kafka_python_configs(strangers))
