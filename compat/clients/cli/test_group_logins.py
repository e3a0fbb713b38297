"""kbroker group, lag and ping behind SASL and TLS, told of both by --command-config."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

from compat.harness.sasl import ALICE, MECHANISMS, SaslServer
from compat.harness.waiting import eventually

TOPIC = "behind-a-login"
_OPTIONS = {"OAUTHBEARER": f'unsecuredLoginStringClaim_sub="{ALICE[0]}"'}


def kbroker(server: SaslServer, properties: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kbroker", *arguments]
    command += ["-b", server.bootstrap, "--command-config", str(properties)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def properties_of(directory: Path, server: SaslServer, mechanism: str, password: str = ALICE[1]) -> Path:
    options = _OPTIONS.get(mechanism, f'username="{ALICE[0]}" password="{password}"')
    path = directory / "client.properties"
    path.write_text(
        "security.protocol=SASL_SSL\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={server.ca}\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=a.LoginModule required {options};\n"
    )
    return path


@pytest.fixture(scope="module")
def members(sasl_server: SaslServer) -> Iterator[SaslServer]:
    """Groups named after their types, each with a member that has both partitions of the topic."""
    settings = {
        "bootstrap.servers": sasl_server.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(sasl_server.ca),
        "sasl.mechanism": "PLAIN",
        "sasl.username": ALICE[0],
        "sasl.password": ALICE[1],
        "log_level": 0,
    }
    with AdminClient(settings) as admin:
        for made in admin.create_topics([NewTopic(TOPIC, 2)]).values():
            made.result(30)
    consumer_settings = {**settings, "group.id": "consumer", "group.protocol": "consumer"}
    with (
        closing(Consumer(consumer_settings)) as consumer,
        closing(ShareConsumer({**settings, "group.id": "share"})) as sharer,
    ):
        consumer.subscribe([TOPIC])
        sharer.subscribe([TOPIC])
        sharer.poll(0.1)

        def assigned() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == 2

        eventually(assigned)
        yield sasl_server


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_groups_are_described_by_who_logs_in(members: SaslServer, tmp_path: Path, mechanism: str) -> None:
    properties = properties_of(tmp_path, members, mechanism)

    def described() -> bool:
        asked = kbroker(members, properties, "group", "describe", "consumer", "share", "--json")
        if "GROUP_ID_NOT_FOUND" in asked.stderr:
            return False  # its member is still on the way
        assert asked.returncode == 0, asked.stderr
        groups = json.loads(asked.stdout)
        assert [group["type"] for group in groups] == ["consumer", "share"]
        both = [f"{TOPIC}-0", f"{TOPIC}-1"]
        return all([member["partitions"] for member in group["members"]] == [both] for group in groups)

    eventually(described)
    assert kbroker(members, properties, "lag", "consumer", "share").returncode == 0
    assert kbroker(members, properties, "ping").returncode == 0


def test_a_wrong_password_is_told(members: SaslServer, tmp_path: Path) -> None:
    properties = properties_of(tmp_path, members, "SCRAM-SHA-256", password="wrong")
    refused = kbroker(members, properties, "group", "describe", "share", "--timeout", "5")
    assert refused.returncode not in (0, None)
    assert "SASL_AUTHENTICATION_FAILED" in refused.stderr
