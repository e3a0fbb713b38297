"""Kafka's own tools over TLS: with and without certificates, with every version, with key stores of Java."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.harness.tls import TlsServer, java_properties
from compat.harness.tools import KafkaTools, ToolResult
from compat.harness.waiting import eventually
from tests.support.certificates import HOSTS, Certificates

Run = Callable[..., ToolResult]
LINES = [f"line {number} {'x' * 500}" for number in range(300)]


@pytest.fixture
def run(kafka_tools: KafkaTools, tmp_path: Path) -> Run:
    """run(server, properties, tool, *arguments): the tool with a file of these properties"""

    def run(server: TlsServer, properties: str, tool: str, *arguments: str, stdin: str = "") -> ToolResult:
        file = tmp_path / "client.properties"
        file.write_text(properties)
        given = ("--bootstrap-server", server.tls_bootstrap, "--command-config", str(file))
        return kafka_tools.run(tool, *given, *arguments, stdin=stdin, timeout=90)

    return run


def round_trip(run: Run, server: TlsServer, topic: str, properties: str) -> None:
    created = run(server, properties, "kafka-topics", "--create", "--topic", topic)
    assert created.exit_code == 0, created.output
    run(server, properties, "kafka-console-producer", "--topic", topic, stdin="\n".join(LINES))
    read = run(
        server, properties, "kafka-console-consumer",
        "--topic", topic, "--from-beginning", "--max-messages", "300", "--timeout-ms", "30000",
    )  # fmt: skip
    assert read.stdout.splitlines() == LINES, read.output[-2000:]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_records_go_there_and_back_over_every_version(
    run: Run, tls_server: TlsServer, topic: str, certificates: Certificates, version: str
) -> None:
    round_trip(run, tls_server, topic, java_properties(certificates, ssl_enabled_protocols=version))


def test_a_client_with_a_certificate_is_let_in(
    run: Run, mutual_tls_server: TlsServer, topic: str, certificates: Certificates
) -> None:
    round_trip(run, mutual_tls_server, topic, java_properties(certificates, certificates.client))


def test_the_performance_tools_run(
    run: Run, tls_server: TlsServer, topic: str, certificates: Certificates
) -> None:
    properties = java_properties(certificates)
    produced = run(
        tls_server, properties, "kafka-producer-perf-test",
        "--topic", topic, "--num-records", "20000", "--record-size", "1024", "--throughput", "-1",
    )  # fmt: skip
    assert re.search(r"20000 records sent", produced.stdout), produced.output
    consumed = run(
        tls_server, properties, "kafka-consumer-perf-test",
        "--topic", topic, "--num-records", "20000", "--timeout", "30000", "--hide-header",
    )  # fmt: skip
    assert int(consumed.stdout.strip().splitlines()[-1].split(",")[4]) >= 20_000, consumed.output


@pytest.mark.parametrize("whose", ["nobody", "strangers"])
def test_a_client_without_a_certificate_of_the_authority_is_refused(
    run: Run, mutual_tls_server: TlsServer, certificates: Certificates, strangers: Certificates, whose: str
) -> None:
    store = strangers.client if whose == "strangers" else None
    properties = java_properties(
        certificates, store, default_api_timeout_ms="8000", request_timeout_ms="8000"
    )
    listed = run(mutual_tls_server, properties, "kafka-topics", "--list")
    assert listed.exit_code == 1
    assert "SslAuthenticationException" in listed.output


def test_a_client_that_trusts_another_authority_refuses(
    run: Run, tls_server: TlsServer, strangers: Certificates
) -> None:
    listed = run(tls_server, java_properties(strangers), "kafka-topics", "--list")
    assert listed.exit_code == 1
    assert "SslAuthenticationException" in listed.output


def test_a_key_store_is_exchanged_while_clients_stay(
    run: Run, tls_server: TlsServer, certificates: Certificates
) -> None:
    """kafka-configs, as Kafka's documentation says."""
    new = certificates.store("renewed", certificates.authority.issue_broker(HOSTS))
    properties = java_properties(certificates)
    resource = ("--entity-type", "brokers", "--entity-name", str(tls_server.node_id))
    change = f"listener.name.ssl.ssl.keystore.location={new}"
    altered = run(tls_server, properties, "kafka-configs", "--alter", *resource, "--add-config", change)
    assert altered.exit_code == 0, altered.output
    describe = ("kafka-configs", "--describe", *resource)
    eventually(lambda: str(new) in run(tls_server, properties, *describe).stdout)
    wrong = f"listener.name.ssl.ssl.keystore.location={certificates.ca}"
    refused = run(tls_server, properties, "kafka-configs", "--alter", *resource, "--add-config", wrong)
    assert "InvalidRequestException" in refused.output
    removed = ("--delete-config", "listener.name.ssl.ssl.keystore.location")
    assert run(tls_server, properties, "kafka-configs", "--alter", *resource, *removed).exit_code == 0
