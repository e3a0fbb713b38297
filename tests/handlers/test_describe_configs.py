from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode

from .config_resources import BROKER, GROUP, LOGGER, METRICS, TOPIC, alter, describe


@pytest.fixture(autouse=True)
def topics(cluster):
    cluster.create("orders")
    cluster.create("payments")


def synonyms(config):
    return [(synonym.name, synonym.value, int(synonym.source)) for synonym in config.synonyms]


@pytest.mark.parametrize("names", [None, []])
def test_no_names_means_every_topic_config(cluster, names):
    (result,) = describe(cluster, (TOPIC, "orders", names))
    assert (result.error_code, result.error_message) == (0, "")
    assert len(result.configs) == 33
    assert "internal.segment.bytes" not in {config.name for config in result.configs}


def test_only_the_named_configs_are_described_and_unknown_names_are_left_out(cluster):
    (result,) = describe(cluster, (TOPIC, "orders", ["retention.ms", "retention.ms", "nope"]))
    (config,) = result.configs
    assert (config.name, config.value, config.config_source, config.config_type) == (
        "retention.ms",
        "604800000",
        5,
        5,
    )
    assert (config.synonyms, config.documentation, config.read_only, config.is_sensitive) == (
        [],
        None,
        False,
        False,
    )


def test_synonyms_lead_from_the_topic_through_the_brokers_layers_to_the_default(cluster):
    cluster.broker = cluster.start({"log.retention.minutes": "5"})
    alter(cluster, (BROKER, "1", [("log.retention.ms", 0, " 123 ")]))
    alter(cluster, (BROKER, "", [("log.retention.ms", 0, "456")]))
    alter(cluster, (TOPIC, "orders", [("retention.ms", 0, " 77 ")]))
    (result,) = describe(cluster, (TOPIC, "orders", ["retention.ms"]), include_synonyms=True)
    (config,) = result.configs
    assert (config.value, config.config_source) == ("77", 1)
    assert synonyms(config) == [
        ("retention.ms", "77", 1),
        ("log.retention.ms", " 123 ", 2),
        ("log.retention.ms", "456", 3),
        ("log.retention.minutes", "5", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_a_default_under_another_name_alone_is_no_synonym(cluster):
    (result,) = describe(cluster, (TOPIC, "orders", ["retention.ms", "segment.bytes"]), include_synonyms=True)
    by_name = {config.name: synonyms(config) for config in result.configs}
    assert by_name == {"retention.ms": [], "segment.bytes": [("log.segment.bytes", "1073741824", 5)]}


def test_an_internal_config_shows_once_it_is_set(cluster):
    alter(cluster, (TOPIC, "orders", [("internal.segment.bytes", 0, "5000")]))
    (result,) = describe(cluster, (TOPIC, "orders", ["internal.segment.bytes"]))
    assert result.configs[0].value == "5000"


def test_documentation_comes_when_asked_for(cluster):
    (result,) = describe(cluster, (TOPIC, "orders", ["flush.ms"]), include_documentation=True)
    assert "forced to disk" in result.configs[0].documentation


def test_version_0_says_whether_a_value_is_the_default(cluster):
    alter(cluster, (TOPIC, "orders", [("retention.ms", 0, "5")]))
    (result,) = describe(cluster, (TOPIC, "orders", ["retention.ms", "flush.ms"]), version=0)
    assert {config.name: config.is_default for config in result.configs} == {
        "retention.ms": False,
        "flush.ms": True,
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_kind_of_resource_is_described_at_every_version(cluster, version):
    alter(
        cluster,
        (BROKER, "", [("custom", 0, "x")]),
        (GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")]),
    )
    resources = [(TOPIC, "orders"), (BROKER, "1"), (BROKER, ""), (LOGGER, "1"), (METRICS, "m"), (GROUP, "g")]
    results = describe(
        cluster, *((*each, None) for each in resources), version=version, include_synonyms=True
    )
    assert [result.error_code for result in results] == [0] * 6


@pytest.mark.parametrize(
    ("type_", "name", "code", "message"),
    [
        (TOPIC, "gone", "UNKNOWN_TOPIC_OR_PARTITION", ""),
        (BROKER, "x", "INVALID_REQUEST", '"x" is not the number of a broker.'),
        (BROKER, "7", "INVALID_REQUEST", "There is no broker 7 here, only broker 1."),
        (LOGGER, "", "INVALID_REQUEST", '"" is not the number of a broker.'),
        (LOGGER, "2", "INVALID_REQUEST", "There is no broker 2 here, only broker 1."),
        (METRICS, "", "INVALID_REQUEST", "A client metrics subscription needs a name."),
        (GROUP, "", "INVALID_REQUEST", "A group needs a name."),
    ],
)
def test_a_resource_that_cannot_be_described_is_refused_alone(cluster, type_, name, code, message):
    refused, fine = describe(cluster, (type_, name, None), (TOPIC, "orders", ["flush.ms"]))
    assert (ErrorCode(refused.error_code).name, refused.error_message, refused.configs) == (code, message, [])
    assert (refused.resource_type, refused.resource_name) == (type_, name)
    assert fine.error_code == 0


@pytest.mark.parametrize("name", ["", "a b"])
def test_an_illegal_topic_name_is_an_invalid_topic(cluster, name):
    (result,) = describe(cluster, (TOPIC, name, None))
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_an_unknown_resource_type_spoils_the_whole_request(cluster):
    results = describe(cluster, (TOPIC, "orders", None), (3, "x", None))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_the_broker_shows_every_config_with_source_and_mutability(cluster):
    cluster.broker = cluster.start({"num.partitions": "3", "ssl.key.password": "secret"})
    (result,) = describe(cluster, (BROKER, "1", None), include_synonyms=True)
    configs = {config.name: config for config in result.configs}
    assert len(configs) > 340
    assert (configs["num.partitions"].value, configs["num.partitions"].config_source) == ("3", 4)
    assert configs["num.partitions"].read_only
    assert synonyms(configs["num.partitions"]) == [("num.partitions", "3", 4), ("num.partitions", "1", 5)]
    assert not configs["log.retention.ms"].read_only
    assert configs["log.retention.ms"].value is None
    password = configs["ssl.key.password"]
    assert (password.value, password.is_sensitive) == (None, True)
    assert synonyms(password) == [("ssl.key.password", None, 4)]


def test_the_cluster_shows_only_what_was_altered(cluster):
    alter(cluster, (BROKER, "", [("message.max.bytes", 0, "5"), ("custom", 0, "x")]))
    alter(cluster, (BROKER, "1", [("message.max.bytes", 0, "6")]))
    (result,) = describe(cluster, (BROKER, "", None), include_synonyms=True)
    unknown, known, replicas = sorted(result.configs, key=lambda config: config.name)
    assert (replicas.name, replicas.value) == ("min.insync.replicas", "1")
    assert (known.name, known.value, known.config_source, known.read_only) == (
        "message.max.bytes",
        "5",
        3,
        False,
    )
    assert synonyms(known) == [("message.max.bytes", "5", 3)]
    assert (unknown.name, unknown.value, unknown.is_sensitive, unknown.config_type) == (
        "custom",
        None,
        True,
        0,
    )


def test_throttles_and_a_listeners_own_configs_show_when_set(cluster):
    changes = [("leader.replication.throttled.rate", 0, "5"), ("listener.name.x.max.connections", 0, "7")]
    alter(cluster, (BROKER, "1", changes))
    (result,) = describe(cluster, (BROKER, "1", [change[0] for change in changes]), include_synonyms=True)
    throttle, own = sorted(result.configs, key=lambda config: config.name)
    assert (throttle.value, throttle.config_type, throttle.read_only) == ("5", 5, False)
    assert (own.value, own.config_type, own.read_only) == ("7", 3, True)
    assert synonyms(own) == [
        ("listener.name.x.max.connections", "7", 2),
        ("max.connections", "2147483647", 5),
    ]


def test_group_configs_fall_back_to_the_brokers(cluster):
    alter(cluster, (GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")]))
    (result,) = describe(cluster, (GROUP, "g", None), include_synonyms=True)
    configs = {config.name: config for config in result.configs}
    kinds = {name.partition(".")[0] for name in configs}
    assert kinds == {"consumer", "errors", "share", "streams", "kbroker"}
    assert synonyms(configs["consumer.session.timeout.ms"]) == [
        ("consumer.session.timeout.ms", "50000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    assert synonyms(configs["consumer.heartbeat.interval.ms"]) == [
        ("group.consumer.heartbeat.interval.ms", "5000", 5)
    ]


def test_client_metrics_show_their_defaults_too(cluster):
    alter(cluster, (METRICS, "m", [("metrics", 0, "a, b,a")]))
    (result,) = describe(cluster, (METRICS, "m", None), include_synonyms=True)
    assert {
        config.name: (config.value, int(config.config_source), synonyms(config)) for config in result.configs
    } == {
        "interval.ms": ("300000", 5, []),
        "match": ("", 5, []),
        "metrics": ("a,b", 7, [("metrics", "a,b", 7)]),
    }


def test_loggers_show_their_level(cluster):
    (result,) = describe(cluster, (LOGGER, "1", ["root", "kbroker.config"]))
    assert {config.name for config in result.configs} == {"root", "kbroker.config"}
    assert {(config.config_source, config.documentation) for config in result.configs} == {(6, "")}
