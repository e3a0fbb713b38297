"""kbroker's definitions of configs against those of Apache Kafka 4.3.1.

Defaults are those that Kafka shows as such; what it was started with is left out. What differs on purpose is
listed here with its reason, and the lists may not hold anything that does not differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.harness.brokers import APACHE
from compat.harness.side import Side
from compat.harness.waiting import eventually
from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.definition import to_text
from kbroker.config.description import describe_broker, describe_topic
from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kbroker.config.settings import Settings
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.protocol.errors import ErrorCode
from tests.config.refusals import REFUSALS

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
DEFAULT = 5
NODE = "1"
Configs = dict[str, dict[str, Any]]

OTHER_DEFAULTS = {
    "broker.id": "node.id has a default, and this is it",
    "controller.listener.names": "Kafka wants it to be set",
    "flush.ms": "a power loss takes one second, not everything",
    "listeners": "nothing but this machine unless told so",
    "log.dir": "no data in /tmp",
    "log.flush.scheduler.interval.ms": "the default of flush.ms",
    "node.id": "Kafka wants it to be set",
    "offsets.topic.replication.factor": "there is one broker",
    "process.roles": "Kafka wants it to be set",
    "queued.max.request.bytes": "memory is bounded unless told otherwise",
    "share.coordinator.state.topic.min.isr": "there is one broker",
    "share.coordinator.state.topic.replication.factor": "there is one broker",
    "socket.listen.backlog.size": "a burst of new connections is not left to try again",
    "socket.receive.buffer.bytes": "the system knows better what a connection needs",
    "socket.send.buffer.bytes": "the system knows better what a connection needs",
    "transaction.state.log.min.isr": "there is one broker",
    "transaction.state.log.replication.factor": "there is one broker",
}
# KIP-1191, which Kafka 4.3 has not yet.
LATER_IN_KAFKA = {
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.copy.record.enable",
    "errors.deadletterqueue.topic.name",
    "errors.deadletterqueue.topic.name.prefix",
}
# Kafka can open and close listeners while it runs.
READ_ONLY_HERE = {"listener.security.protocol.map", "listeners"}
# With eligible leader replicas Kafka sets this for the cluster by itself.
SET_BY_KAFKA = {"min.insync.replicas"}


@pytest.fixture
def kafkas(pair: Pair) -> Callable[[int, str], Configs]:
    """kafkas(type, name): the configs of a resource, as Kafka describes them."""
    return lambda kind, name: pair.kafkas(lambda side: described(side, kind, name))


def described(side: Side, kind: int, name: str, *, documented: bool = False) -> Configs:
    """By name; values only where they are defaults, for others are this broker's own."""
    if kind == TOPIC:
        wanted = {"Name": name, "NumPartitions": 1, "ReplicationFactor": 1}
        side.raw("CreateTopics", 7, {"Topics": [wanted], "timeoutMs": 10_000})
    resource = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": None}
    request = {"Resources": [resource], "IncludeSynonyms": True, "IncludeDocumentation": documented}
    (result,) = eventually(
        lambda: side.raw("DescribeConfigs", 4, request)["Results"], lambda results: results[0]["Configs"]
    )
    configs = {config.pop("Name"): config for config in result["Configs"]}
    for config in configs.values():
        if not documented:
            del config["Documentation"]
        if config["ConfigSource"] != DEFAULT:
            config["Value"] = None
        for synonym in config["Synonyms"]:
            if synonym["Source"] != DEFAULT:
                synonym["Value"] = None
    return configs


def defaults(configs: Configs) -> dict[str, Any]:
    """Name -> the default, where Kafka shows one."""
    found = {}
    for name, config in configs.items():
        chain = [each["Value"] for each in config["Synonyms"] if each["Source"] == DEFAULT]
        if chain:
            found[name] = chain[-1]
        elif config["ConfigSource"] == DEFAULT:
            found[name] = config["Value"]
    return found


def test_topic_configs_have_kafkas_names_types_defaults_and_synonyms(kafkas):
    theirs = kafkas(TOPIC, "definitions")
    ours = {each.name: each for each in describe_topic(Settings(), {})}
    assert ours.keys() == theirs.keys()
    for name, config in theirs.items():
        assert ours[name].type == config["ConfigType"], name
        assert ours[name].read_only == config["ReadOnly"], name
        assert ours[name].is_sensitive == config["IsSensitive"], name
        if name not in SET_BY_KAFKA:
            chain = [(each["Name"], each["Value"], each["Source"]) for each in config["Synonyms"]]
            assert ours[name].synonyms == chain, name
            assert (ours[name].value == config["Value"]) is (name not in OTHER_DEFAULTS), name


def test_broker_configs_have_kafkas_names_types_and_mutability(kafkas):
    theirs = kafkas(BROKER, NODE)
    ours = {each.name: each for each in describe_broker(Settings()) if not each.name.startswith("kbroker.")}
    assert ours.keys() - LATER_IN_KAFKA == theirs.keys()
    for name, config in theirs.items():
        assert ours[name].type == config["ConfigType"], name
        assert ours[name].is_sensitive == config["IsSensitive"], name
        assert (ours[name].read_only == config["ReadOnly"]) is (name not in READ_ONLY_HERE), name


def test_broker_configs_have_kafkas_defaults_but_for_those_with_a_reason(kafkas):
    theirs = defaults(kafkas(BROKER, NODE))
    different = {name for name, text in theirs.items() if to_text(BROKER_CONFIGS[name].default) != text}
    required = {"controller.listener.names", "node.id", "process.roles"}
    assert different | required == OTHER_DEFAULTS.keys() - TOPIC_CONFIGS.keys()


@pytest.mark.parametrize(
    ("type_", "definitions"), [(GROUP, GROUP_CONFIGS), (CLIENT_METRICS, CLIENT_METRICS_CONFIGS)]
)
def test_group_and_client_metrics_configs_have_kafkas_names_types_and_defaults(kafkas, type_, definitions):
    theirs = kafkas(type_, "definitions")
    ours = {name for name in definitions if not name.startswith("kbroker.")}
    assert ours - LATER_IN_KAFKA == theirs.keys()
    for name, text in defaults(theirs).items():
        assert definitions[name].type == theirs[name]["ConfigType"], name
        assert to_text(definitions[name].default) == text, name


def test_our_doc_lines_are_our_own(brokers):
    """Kafka's are not recorded: only a Kafka that runs tells them."""
    running = [server for server in brokers if server.name == APACHE]
    if not running:
        pytest.skip("needs an Apache Kafka that runs: make compat-apache")
    side = Side(running[0])
    theirs = described(side, BROKER, NODE, documented=True)
    theirs |= described(side, TOPIC, "definitions", documented=True)
    side.disconnect()
    ours = {**BROKER_CONFIGS, **TOPIC_CONFIGS}
    for name, config in theirs.items():
        assert ours[name].doc.rstrip(".").lower() not in config["Documentation"].lower(), name


@pytest.mark.parametrize(("type_", "name", "change", "code"), REFUSALS)
def test_kafka_refuses_what_our_tests_say_it_refuses(pair, type_, name, change, code):
    config = dict(zip(("Name", "ConfigOperation", "Value"), change, strict=True))
    resource = {"ResourceType": type_, "ResourceName": name, "Configs": [config]}
    request = {"Resources": [resource], "ValidateOnly": True}

    def scenario(side):
        described(side, TOPIC, "orders")
        (refused,) = side.raw("IncrementalAlterConfigs", 1, request)["Responses"]
        return ErrorCode(refused["ErrorCode"]).name

    assert pair.kafkas(scenario) == code
