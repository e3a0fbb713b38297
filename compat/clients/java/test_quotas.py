"""kafka-configs for quotas, and Kafka's performance tools held to them."""

from __future__ import annotations

import re
import uuid

import pytest

from compat.harness.waiting import eventually

ENTITIES = {
    "a user": ["--entity-type", "users", "--entity-name", "{name}"],
    "a client id": ["--entity-type", "clients", "--entity-name", "{name}"],
    "a user and a client id": [
        *("--entity-type", "users", "--entity-name", "{name}"),
        *("--entity-type", "clients", "--entity-name", "{name}"),
    ],
    "a user and the default client id": [
        *("--entity-type", "users", "--entity-name", "{name}"),
        *("--entity-type", "clients", "--entity-default"),
    ],
}


@pytest.fixture
def configs(kafka_server, kafka_tools):
    def run(*arguments, ok=True):
        result = kafka_tools.run("kafka-configs", "--bootstrap-server", kafka_server.bootstrap, *arguments)
        # To describe a user is to ask for its SCRAM credentials, too, which is none of the quotas' business.
        assert (result.exit_code == 0) is ok or "USER_SCRAM" in result.stderr, result
        return result.output

    return run


@pytest.fixture
def name():
    return f"quota-{uuid.uuid4().hex}"


@pytest.mark.parametrize("kind", ENTITIES)
def test_quotas_are_added_described_altered_and_deleted(configs, name, kind):
    entity = [part.format(name=name) for part in ENTITIES[kind]]
    quotas = (
        "producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=12.5,controller_mutation_rate=3"
    )
    assert "Completed updating config" in configs("--alter", *entity, "--add-config", quotas)
    described = eventually(
        lambda: configs("--describe", *entity), lambda text: "producer_byte_rate=1024.0" in text
    )
    for expected in ("consumer_byte_rate=2048.0", "request_percentage=12.5", "controller_mutation_rate=3.0"):
        assert expected in described
    configs("--alter", *entity, "--add-config", "producer_byte_rate=4096")
    eventually(lambda: "producer_byte_rate=4096.0" in configs("--describe", *entity))
    names = "producer_byte_rate,consumer_byte_rate,request_percentage,controller_mutation_rate"
    configs("--alter", *entity, "--delete-config", names)
    eventually(lambda: "producer_byte_rate" not in configs("--describe", *entity))


def test_quotas_of_addresses(configs):
    entity = ["--entity-type", "ips", "--entity-name", "198.51.100.7"]
    configs("--alter", *entity, "--add-config", "connection_creation_rate=5")
    eventually(lambda: "connection_creation_rate=5.0" in configs("--describe", *entity))
    assert "198.51.100.7" in configs("--describe", "--entity-type", "ips")
    configs("--alter", *entity, "--delete-config", "connection_creation_rate")
    eventually(lambda: "connection_creation_rate" not in configs("--describe", *entity))


def test_a_quota_that_may_not_be_is_refused(configs, name):
    entity = ["--entity-type", "users", "--entity-name", name]
    refused = configs("--alter", *entity, "--add-config", "producer_byte_rate=0", ok=False)
    assert "InvalidRequestException" in refused


def test_a_producer_is_held_to_its_rate(kafka_server, kafka_tools, configs, name, topic):
    """Two megabytes at 100,000 bytes a second: ten seconds' worth may come at once, the rest takes time."""
    entity = ["--entity-type", "clients", "--entity-name", name]
    configs("--alter", *entity, "--add-config", "producer_byte_rate=100000")
    eventually(lambda: "producer_byte_rate=100000.0" in configs("--describe", *entity))
    result = kafka_tools.run(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "2000", "--record-size", "1000", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={kafka_server.bootstrap}", f"client.id={name}"),
    )
    assert result.exit_code == 0, result
    rate = float(re.findall(r"2000 records sent, ([0-9.]+) records/sec", result.output)[-1])
    seconds = 2000 / rate
    assert 9 <= seconds <= 30
