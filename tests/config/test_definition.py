"""Texts to typed values and back, and what is said of bad ones."""

from __future__ import annotations

import pytest

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.definition import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigDef,
    InvalidConfig,
    to_text,
)
from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kbroker.config.topic_configs import TOPIC_CONFIGS

ALL = [
    *TOPIC_CONFIGS.values(),
    *BROKER_CONFIGS.values(),
    *GROUP_CONFIGS.values(),
    *CLIENT_METRICS_CONFIGS.values(),
]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (BOOLEAN, "false", False),
        (STRING, " a b ", "a b"),
        (INT, "+5", 5),
        (INT, "-2147483648", -(2**31)),
        (SHORT, "32767", 32767),
        (LONG, " 9223372036854775807 ", 2**63 - 1),
        (LONG, "-0", 0),
        (DOUBLE, "0.50", 0.5),
        (DOUBLE, "1e-1", 0.1),
        (DOUBLE, "0.5f", 0.5),
        (DOUBLE, ".5d", 0.5),
        (DOUBLE, "-Infinity", float("-inf")),
        (LIST, "a , b,c", ("a", "b", "c")),
        (LIST, "  ", ()),
        (LIST, "a,,b", ("a", "", "b")),
        (CLASS, "org.example.Plugin", "org.example.Plugin"),
        (PASSWORD, " secret ", "secret"),
    ],
)
def test_a_text_becomes_a_typed_value(type_, text, value):
    assert ConfigDef("name", type_, None, "").parse(text) == value


@pytest.mark.parametrize(
    ("type_", "text", "why"),
    [
        (BOOLEAN, "yes", "is neither true nor false"),
        (BOOLEAN, "", "is neither true nor false"),
        (INT, "2147483648", "is not a number of 32 bits"),
        (INT, "", "is not a whole number"),
        (INT, "1_0", "is not a whole number"),
        (INT, "٣", "is not a whole number"),
        (INT, "1" * 5000, "is not a number of 32 bits"),
        (SHORT, "32768", "is not a number of 16 bits"),
        (LONG, "5L", "is not a whole number"),
        (LONG, "1.0", "is not a whole number"),
        (LONG, "99999999999999999999", "is not a number of 64 bits"),
        (DOUBLE, "x", "is not a number"),
        (DOUBLE, "", "is not a number"),
        (DOUBLE, "inf", "is not a number"),
        (DOUBLE, "1_0.0", "is not a number"),
    ],
)
def test_a_text_of_the_wrong_type_is_refused(type_, text, why):
    with pytest.raises(InvalidConfig) as refusal:
        ConfigDef("some.name", type_, None, "").parse(text)
    assert str(refusal.value) == f'some.name: "{text}" {why}'


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("retention.ms", "-2", "is too small, the least is -1"),
        ("segment.bytes", "100", "is too small, the least is 1048576"),
        ("compression.lz4.level", "18", "is too large, the most is 17"),
        ("compression.gzip.level", "0", "is not a level: 1 to 9, or -1 for the usual one"),
        ("compression.type", "GZIP", "is none of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("min.cleanable.dirty.ratio", "1.5", "is too large, the most is 1"),
        ("cleanup.policy", "Delete", "is none of compact, delete"),
        ("cleanup.policy", "compact,", "has an empty item"),
        (
            "leader.replication.throttled.replicas",
            "*,0:1",
            "is neither * nor PARTITION:BROKER, separated by commas",
        ),
    ],
)
def test_a_value_outside_the_permitted_ones_is_refused(name, text, why):
    with pytest.raises(InvalidConfig) as refusal:
        TOPIC_CONFIGS[name].parse(text)
    assert str(refusal.value) == f'{name}: "{text}" {why}'


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cleanup.policy", "", ()),
        ("cleanup.policy", "delete, delete,compact", ("delete", "compact")),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("leader.replication.throttled.replicas", "0:1,0:1", ("0:1", "0:1")),
        ("follower.replication.throttled.replicas", "", ()),
        ("compression.gzip.level", "-1", -1),
    ],
)
def test_odd_values_that_kafka_takes_are_taken(name, text, value):
    assert TOPIC_CONFIGS[name].parse(text) == value


@pytest.mark.parametrize(
    "text", ["latest", "earliest", "by_duration:P1D", "by_duration:PT1H30M", "by_duration:PT0.5S"]
)
def test_a_share_group_may_start_at_an_end_or_some_time_ago(text):
    assert GROUP_CONFIGS["share.auto.offset.reset"].parse(text) == text


@pytest.mark.parametrize(
    "text", ["Latest", "by_duration:x", "by_duration:-P1D", "by_duration:P", "by_duration:PT"]
)
def test_a_share_group_starts_nowhere_else(text):
    with pytest.raises(InvalidConfig, match="is none of latest, earliest and by_duration"):
        GROUP_CONFIGS["share.auto.offset.reset"].parse(text)


def test_lists_that_must_not_be_empty_say_what_they_may_hold():
    with pytest.raises(InvalidConfig, match=r"listeners: the list is empty$"):
        BROKER_CONFIGS["listeners"].parse("")
    with pytest.raises(InvalidConfig, match="the list is empty; it takes broker, controller"):
        BROKER_CONFIGS["process.roles"].parse("")


def test_some_choices_do_not_mind_upper_and_lower_case():
    definition = BROKER_CONFIGS["group.consumer.migration.policy"]
    assert definition.parse("Upgrade") == "Upgrade"
    with pytest.raises(InvalidConfig, match="in capitals or not"):
        definition.parse("sideways")


def test_a_class_name_may_not_be_empty_where_kafka_wants_one():
    with pytest.raises(InvalidConfig, match="the value is empty"):
        BROKER_CONFIGS["remote.log.metadata.manager.class.name"].parse("")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (-1, "-1"),
        (0.5, "0.5"),
        (1e-3, "0.001"),
        (5e-4, "5.0E-4"),
        (1e7, "1.0E7"),
        (1234567.0, "1234567.0"),
        (12345678.9, "1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-2.5e-10, "-2.5E-10"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
    ],
)
def test_values_are_printed_as_java_prints_them(value, text):
    assert to_text(value) == text


def test_every_default_is_a_value_its_own_definition_takes():
    for definition in ALL:
        text = to_text(definition.default)
        assert text is None or definition.parse(text) == definition.default, definition.name


def test_every_definition_says_in_a_sentence_what_it_means():
    for definition in ALL:
        assert definition.doc[0].isupper(), definition.name
        assert definition.doc.endswith("."), definition.name


def test_every_synonym_of_a_topic_or_group_config_is_a_broker_config():
    for definition in (*TOPIC_CONFIGS.values(), *GROUP_CONFIGS.values()):
        assert all(synonym in BROKER_CONFIGS for synonym in definition.synonyms)
