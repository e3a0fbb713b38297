"""aiokafka over TLS."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from compat.harness.tls import TlsServer
from tests.support.certificates import Certificates


async def round_trip(server: TlsServer, topic: str, context: ssl.SSLContext) -> None:
    configs = {
        "bootstrap_servers": server.tls_bootstrap,
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    values = [b"%d" % number + bytes(3000) for number in range(300)]
    async with AIOKafkaProducer(**configs) as producer:
        for value in values:
            await producer.send(topic, value)
    async with AIOKafkaConsumer(topic, **configs, auto_offset_reset="earliest") as consumer:
        async with asyncio.timeout(30):
            assert [(await consumer.getone()).value for _ in values] == values


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_records_go_there_and_back_over_every_version(
    tls_server: TlsServer, topic: str, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    asyncio.run(round_trip(tls_server, topic, certificates.client_context(version=version)))


def test_a_client_with_a_certificate_is_let_in(
    mutual_tls_server: TlsServer, topic: str, certificates: Certificates
) -> None:
    asyncio.run(round_trip(mutual_tls_server, topic, certificates.client_context(certificates.client)))


@pytest.mark.parametrize("whose", [None, "strangers"])
def test_a_client_without_a_certificate_of_the_authority_is_refused(
    mutual_tls_server: TlsServer, certificates: Certificates, strangers: Certificates, whose: str | None
) -> None:
    store: Path | None = strangers.client if whose else None
    with pytest.raises(KafkaConnectionError):
        asyncio.run(round_trip(mutual_tls_server, "none", certificates.client_context(store)))
