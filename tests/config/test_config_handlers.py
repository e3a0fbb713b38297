"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, as clients see them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kbroker.config.settings import Settings
from kbroker.handlers import alter_configs, describe_configs, incremental_alter_configs, list_config_resources
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages import alter_configs as legacy
from kbroker.protocol.messages import incremental_alter_configs as incremental
from kbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kbroker.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.steps import result_of

from .conftest import FakeBroker, SlowCatalog

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def describe(broker, *resources, version=4, **options):
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(*resource) for resource in resources], **options
    )
    response = describe_configs.handle(broker, request, SimpleNamespace(api_version=version))
    encode_bytes(response, version)
    return response.results


def synonyms(config):
    return [(synonym.name, synonym.value, int(synonym.source)) for synonym in config.synonyms]


def alter(broker, *resources, validate_only=False):
    request = incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                type_, name, [incremental.AlterableConfig(*change) for change in changes]
            )
            for type_, name, changes in resources
        ],
        validate_only=validate_only,
    )
    return result_of(incremental_alter_configs.handle(broker, request, SimpleNamespace(api_version=1)))


def codes(response):
    return [ErrorCode(answer.error_code).name for answer in response.responses]


@pytest.mark.parametrize("names", [None, []])
def test_no_names_means_every_topic_config(broker, names):
    (result,) = describe(broker, (TOPIC, "orders", names))
    assert (result.error_code, result.error_message) == (0, "")
    assert len(result.configs) == 33
    assert "internal.segment.bytes" not in {config.name for config in result.configs}


def test_only_the_named_configs_are_described_and_unknown_names_are_left_out(broker):
    (result,) = describe(broker, (TOPIC, "orders", ["retention.ms", "retention.ms", "nope"]))
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


def test_synonyms_lead_from_the_topic_through_the_brokers_layers_to_the_default():
    broker = FakeBroker(Settings.load(flags={"log.retention.minutes": "5"}))
    alter(broker, (BROKER, "1", [("log.retention.ms", 0, " 123 ")]))
    alter(broker, (BROKER, "", [("log.retention.ms", 0, "456")]))
    alter(broker, (TOPIC, "orders", [("retention.ms", 0, " 77 ")]))
    (result,) = describe(broker, (TOPIC, "orders", ["retention.ms"]), include_synonyms=True)
    (config,) = result.configs
    assert (config.value, config.config_source) == ("77", 1)
    assert synonyms(config) == [
        ("retention.ms", "77", 1),
        ("log.retention.ms", " 123 ", 2),
        ("log.retention.ms", "456", 3),
        ("log.retention.minutes", "5", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_a_default_under_another_name_alone_is_no_synonym(broker):
    (result,) = describe(broker, (TOPIC, "orders", ["retention.ms", "segment.bytes"]), include_synonyms=True)
    by_name = {config.name: synonyms(config) for config in result.configs}
    assert by_name == {"retention.ms": [], "segment.bytes": [("log.segment.bytes", "1073741824", 5)]}


def test_an_internal_config_shows_once_it_is_set(broker):
    alter(broker, (TOPIC, "orders", [("internal.segment.bytes", 0, "5000")]))
    (result,) = describe(broker, (TOPIC, "orders", ["internal.segment.bytes"]))
    assert result.configs[0].value == "5000"


def test_documentation_comes_when_asked_for(broker):
    (result,) = describe(broker, (TOPIC, "orders", ["flush.ms"]), include_documentation=True)
    assert "forced to disk" in result.configs[0].documentation


def test_version_0_says_whether_a_value_is_the_default(broker):
    alter(broker, (TOPIC, "orders", [("retention.ms", 0, "5")]))
    (result,) = describe(broker, (TOPIC, "orders", ["retention.ms", "flush.ms"]), version=0)
    assert {config.name: config.is_default for config in result.configs} == {
        "retention.ms": False,
        "flush.ms": True,
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_resource_type_can_be_encoded_at_every_version(broker, version):
    alter(
        broker,
        (BROKER, "", [("custom", 0, "x")]),
        (GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")]),
    )
    resources = [(TOPIC, "orders"), (BROKER, "1"), (BROKER, ""), (LOGGER, "1"), (METRICS, "m"), (GROUP, "g")]
    results = describe(broker, *((*each, None) for each in resources), version=version, include_synonyms=True)
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
def test_a_resource_that_cannot_be_described_is_refused_alone(broker, type_, name, code, message):
    refused, fine = describe(broker, (type_, name, None), (TOPIC, "orders", ["flush.ms"]))
    assert (ErrorCode(refused.error_code).name, refused.error_message, refused.configs) == (code, message, [])
    assert (refused.resource_type, refused.resource_name) == (type_, name)
    assert fine.error_code == 0


@pytest.mark.parametrize("name", ["", "a b"])
def test_an_illegal_topic_name_is_an_invalid_topic(broker, name):
    (result,) = describe(broker, (TOPIC, name, None))
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_an_unknown_resource_type_spoils_the_whole_request(broker):
    results = describe(broker, (TOPIC, "orders", None), (3, "x", None))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_the_broker_shows_every_config_with_source_and_mutability():
    broker = FakeBroker(Settings.load(flags={"num.partitions": "3", "ssl.key.password": "secret"}))
    (result,) = describe(broker, (BROKER, "1", None), include_synonyms=True)
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


def test_the_cluster_shows_only_what_was_altered(broker):
    alter(broker, (BROKER, "", [("message.max.bytes", 0, "5"), ("custom", 0, "x")]))
    alter(broker, (BROKER, "1", [("message.max.bytes", 0, "6")]))
    (result,) = describe(broker, (BROKER, "", None), include_synonyms=True)
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


def test_throttles_and_a_listeners_own_configs_show_when_set(broker):
    changes = [("leader.replication.throttled.rate", 0, "5"), ("listener.name.x.max.connections", 0, "7")]
    alter(broker, (BROKER, "1", changes))
    (result,) = describe(broker, (BROKER, "1", [change[0] for change in changes]), include_synonyms=True)
    throttle, own = sorted(result.configs, key=lambda config: config.name)
    assert (throttle.value, throttle.config_type, throttle.read_only) == ("5", 5, False)
    assert (own.value, own.config_type, own.read_only) == ("7", 3, True)
    assert synonyms(own) == [
        ("listener.name.x.max.connections", "7", 2),
        ("max.connections", "2147483647", 5),
    ]


def test_group_configs_fall_back_to_the_brokers(broker):
    alter(broker, (GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")]))
    (result,) = describe(broker, (GROUP, "g", None), include_synonyms=True)
    configs = {config.name: config for config in result.configs}
    assert {name.partition(".")[0] for name in configs} == {"consumer"}
    assert synonyms(configs["consumer.session.timeout.ms"]) == [
        ("consumer.session.timeout.ms", "50000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    assert synonyms(configs["consumer.heartbeat.interval.ms"]) == [
        ("group.consumer.heartbeat.interval.ms", "5000", 5)
    ]


@pytest.mark.parametrize(
    ("config", "value", "kind"),
    [("share.auto.offset.reset", "earliest", "share"), ("streams.num.standby.replicas", "1", "streams")],
)
def test_configs_of_groups_that_do_not_exist_here_are_refused(broker, config, value, kind):
    (refused,) = alter(broker, (GROUP, "g", [(config, 0, value)])).responses
    assert (refused.error_code.name, refused.error_message) == (
        "INVALID_CONFIG",
        f"{config}: this broker has no {kind} groups",
    )
    (result,) = describe(broker, (GROUP, "g", None))
    assert config not in {each.name for each in result.configs}


def test_client_metrics_show_their_defaults_too(broker):
    alter(broker, (METRICS, "m", [("metrics", 0, "a, b,a")]))
    (result,) = describe(broker, (METRICS, "m", None), include_synonyms=True)
    assert {
        config.name: (config.value, int(config.config_source), synonyms(config)) for config in result.configs
    } == {
        "interval.ms": ("300000", 5, []),
        "match": ("", 5, []),
        "metrics": ("a,b", 7, [("metrics", "a,b", 7)]),
    }


def test_loggers_show_their_level(broker):
    (result,) = describe(broker, (LOGGER, "1", ["root", "kbroker.config"]))
    assert {config.name for config in result.configs} == {"root", "kbroker.config"}
    assert {(config.config_source, config.documentation) for config in result.configs} == {(6, "")}


def test_altering_answers_each_resource_for_itself(broker):
    response = alter(
        broker,
        (TOPIC, "orders", [("retention.ms", 0, "5")]),
        (TOPIC, "payments", [("retention.ms", 0, "x")]),
        (TOPIC, "gone", []),
    )
    assert codes(response) == ["NONE", "INVALID_CONFIG", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert [answer.error_message is None for answer in response.responses] == [True, False, False]
    assert broker.topics.get("orders").configs == {"retention.ms": "5"}


def test_a_resource_named_twice_is_refused_at_both_places(broker):
    response = alter(
        broker,
        (TOPIC, "orders", [("retention.ms", 0, "5")]),
        (TOPIC, "orders", [("retention.ms", 0, "6")]),
        (TOPIC, "payments", []),
    )
    assert codes(response) == ["INVALID_REQUEST", "INVALID_REQUEST", "NONE"]
    assert response.responses[0].error_message == "The resource is named twice."
    assert broker.topics.get("orders").configs == {}


def test_the_answer_waits_until_every_change_is_stored():
    broker = FakeBroker(catalog=SlowCatalog())
    pending = alter(
        broker, (TOPIC, "orders", [("retention.ms", 0, "5")]), (TOPIC, "payments", [("retention.ms", 0, "6")])
    )
    first, second = broker.catalog.writes
    second.fail(OSError("no"))
    assert not pending.done
    first.resolve(None)
    assert codes(pending.result()) == ["NONE", "UNKNOWN_SERVER_ERROR"]


def test_the_legacy_request_replaces_all_configs(broker):
    alter(broker, (TOPIC, "orders", [("flush.ms", 0, "5")]))
    request = legacy.AlterConfigsRequest(
        resources=[
            legacy.AlterConfigsResource(TOPIC, "orders", [legacy.AlterableConfig("retention.ms", "9")]),
            legacy.AlterConfigsResource(TOPIC, "payments", [legacy.AlterableConfig("retention.ms", None)]),
            legacy.AlterConfigsResource(LOGGER, "1", [legacy.AlterableConfig("root", "INFO")]),
        ]
    )
    response = result_of(alter_configs.handle(broker, request, SimpleNamespace(api_version=2)))
    assert codes(response) == ["NONE", "INVALID_REQUEST", "INVALID_REQUEST"]
    assert [answer.error_message for answer in response.responses[1:]] == [
        "retention.ms: the value is missing",
        "Resources of type 8 have no configs to alter.",
    ]
    assert broker.topics.get("orders").configs == {"retention.ms": "9"}


def list_resources(broker, types, version=1):
    request = ListConfigResourcesRequest(resource_types=types)
    response = list_config_resources.handle(broker, request, SimpleNamespace(api_version=version))
    return response.error_code, [
        (each.resource_type, each.resource_name) for each in response.config_resources
    ]


def test_resources_with_configs_are_listed_by_type(broker):
    alter(broker, (GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")]))
    alter(broker, (METRICS, "m", [("metrics", 0, "*")]))
    everything = [
        (GROUP, "g"),
        (METRICS, "m"),
        (LOGGER, "1"),
        (BROKER, "1"),
        (TOPIC, "orders"),
        (TOPIC, "payments"),
    ]
    assert list_resources(broker, []) == (0, everything)
    assert list_resources(broker, [GROUP, TOPIC, GROUP]) == (
        0,
        [(GROUP, "g"), (TOPIC, "orders"), (TOPIC, "payments")],
    )
    assert list_resources(broker, [], version=0) == (0, [(METRICS, "m")])


@pytest.mark.parametrize("type_", [0, 1, 99])
def test_listing_an_unknown_type_is_unsupported(broker, type_):
    assert list_resources(broker, [type_, TOPIC]) == (ErrorCode.UNSUPPORTED_VERSION, [])
