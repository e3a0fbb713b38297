"""aiokafka logs in by every mechanism that it has, and is refused with a wrong password."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError, KafkaError

from compat.harness import sasl
from compat.harness.sasl import ALICE, SaslServer

WITH_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Tokens(AbstractTokenProvider):
    async def token(self) -> str:
        return sasl.unsecured_token()


def login(server: SaslServer, mechanism: str, password: str = ALICE[1]) -> dict[str, Any]:
    configs: dict[str, Any] = {
        "bootstrap_servers": server.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=str(server.ca)),
        "sasl_mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        return {**configs, "sasl_oauth_token_provider": Tokens()}
    return {**configs, "sasl_plain_username": ALICE[0], "sasl_plain_password": password}


@pytest.mark.parametrize("mechanism", [*WITH_PASSWORDS, "OAUTHBEARER"])
def test_it_is_let_in(sasl_server: SaslServer, topic: str, mechanism: str) -> None:
    async def round_trip() -> Any:
        async with AIOKafkaProducer(**login(sasl_server, mechanism)) as producer:
            await producer.send_and_wait(topic, b"from who is logged in")
        configs = login(sasl_server, mechanism)
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **configs) as consumer:
            return (await asyncio.wait_for(consumer.getone(), 60)).value

    assert asyncio.run(round_trip()) == b"from who is logged in"


@pytest.mark.parametrize("mechanism", WITH_PASSWORDS)
def test_a_wrong_password_keeps_it_out(sasl_server: SaslServer, mechanism: str) -> None:
    async def start() -> None:
        producer = AIOKafkaProducer(**login(sasl_server, mechanism, "wrong"))
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises((KafkaConnectionError, KafkaError)):
        asyncio.run(start())
