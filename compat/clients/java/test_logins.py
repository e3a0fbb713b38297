"""Kafka's own tools log in by every mechanism, are refused, and look after users and delegation tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.harness.sasl import ADMIN, ALICE, SaslServer
from compat.harness.tools import KafkaTools, ToolResult
from compat.harness.waiting import eventually

MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
Run = Callable[..., ToolResult]


@pytest.fixture
def run(sasl_server: SaslServer, kafka_tools: KafkaTools, tmp_path: Path) -> Run:
    """run("kafka-topics", "--list", login=…, ok=True)"""

    def run_tool(tool: str, *arguments: str, login: str = "", ok: bool | None = True) -> ToolResult:
        config = tmp_path / "client.properties"
        trusted = f"ssl.truststore.type=PEM\nssl.truststore.location={sasl_server.ca}\n"
        config.write_text((login or by_password("PLAIN", *ADMIN)) + trusted)
        address = ("--bootstrap-server", sasl_server.bootstrap, "--command-config", str(config))
        result = kafka_tools.run(tool, *address, *arguments)
        assert ok is None or (result.exit_code == 0) is ok, result
        return result

    return run_tool


def by_password(mechanism: str, name: str, password: str, more: str = "") -> str:
    return (
        "security.protocol=SASL_SSL\n"
        f"sasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={MODULES[mechanism]} required username="{name}" password="{password}"{more};\n'
    )


def by_token(subject: str = "joe") -> str:
    return (
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=OAUTHBEARER\n"
        "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.internals.unsecured."
        "OAuthBearerUnsecuredLoginCallbackHandler\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        f'unsecuredLoginStringClaim_sub="{subject}";\n'
    )


@pytest.mark.parametrize("mechanism", MODULES)
def test_a_password_lets_it_in(run: Run, topic: str, mechanism: str) -> None:
    login = by_password(mechanism, *ALICE)
    run("kafka-topics", "--create", "--topic", topic, login=login)
    assert topic in run("kafka-topics", "--list", login=login).stdout


def test_a_token_lets_it_in(run: Run) -> None:
    run("kafka-topics", "--list", login=by_token())


@pytest.mark.parametrize("name", ["alice", "nobody"])
@pytest.mark.parametrize("mechanism", MODULES)
def test_a_wrong_password_is_told_as_by_kafka(run: Run, mechanism: str, name: str) -> None:
    output = run("kafka-topics", "--list", login=by_password(mechanism, name, "wrong"), ok=False).output
    told = f"{INVALID}{mechanism}"
    if mechanism == "PLAIN":
        told = "Authentication failed: Invalid username or password"
    assert f"SaslAuthenticationException: {told}" in output


def test_users_by_kafka_configs(run: Run, topic: str) -> None:
    user = ("--entity-type", "users", "--entity-name", topic)
    for added in ("SCRAM-SHA-256=[iterations=8192,password=pw]", "SCRAM-SHA-512=[password=pw]"):
        run("kafka-configs", "--alter", *user, "--add-config", added)

    def gets_in(mechanism: str) -> bool:
        login = by_password(mechanism, topic, "pw")
        return run("kafka-topics", "--list", login=login, ok=None).exit_code == 0

    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        eventually(lambda mechanism=mechanism: gets_in(mechanism))
    run("kafka-configs", "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    eventually(lambda: not gets_in("SCRAM-SHA-256"))
    assert gets_in("SCRAM-SHA-512")
    again = run("kafka-configs", "--alter", *user, "--delete-config", "SCRAM-SHA-256", ok=False)
    assert "ResourceNotFoundException" in again.output or "does not exist" in again.output


def test_users_are_described_by_kafka_configs(run: Run, topic: str) -> None:
    user = ("--entity-type", "users", "--entity-name", topic)
    run("kafka-configs", "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=pw]")
    eventually(lambda: "SCRAM-SHA-256" in run("kafka-configs", "--describe", *user).stdout)
    assert "SCRAM-SHA-256=iterations=8192" in run("kafka-configs", "--describe", *user).stdout


def test_delegation_tokens(run: Run) -> None:
    """Every operation of kafka-delegation-tokens, and a login by a token."""
    owner = by_password("PLAIN", *ALICE)
    created = run(
        "kafka-delegation-tokens",
        *("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:admin"),
        login=owner,
    ).stdout
    token_id, hmac = re.findall(r"^([\w-]{22})\s+(\S+==)", created, re.MULTILINE)[0]

    def described(login: str = owner) -> str:
        arguments = ("--describe", "--owner-principal", "User:alice")
        return run("kafka-delegation-tokens", *arguments, login=login).stdout

    eventually(lambda: token_id in described())
    assert "User:admin" in described()
    renewing = ("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed renew operation" in run("kafka-delegation-tokens", *renewing).stdout
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        token = by_password(mechanism, token_id, hmac, ' tokenauth="true"')
        run("kafka-topics", "--list", login=token)
    refused = run(
        "kafka-delegation-tokens", "--create", "--max-life-time-period", "-1", login=token, ok=False
    )
    assert "DelegationTokenNotAllowed" in refused.output or "not allowed" in refused.output
    expiring = ("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert "Completed expire operation" in run("kafka-delegation-tokens", *expiring, login=owner).stdout
    eventually(lambda: token_id not in described())
    run("kafka-topics", "--list", login=token, ok=False)
    missing = run("kafka-delegation-tokens", *renewing, login=owner, ok=False)
    assert "DelegationTokenNotFoundException" in missing.output
