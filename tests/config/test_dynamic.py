"""Altering configs at run time: what is taken, what is refused with which code, what is told to whom."""

from __future__ import annotations

import logging

import pytest

from kbroker.config.dynamic import DynamicConfigs
from kbroker.config.resources import Change, Operation, ResourceType
from kbroker.config.settings import Settings
from kbroker.protocol.errors import ApiError, ErrorCode

from .conftest import FakeBroker, SlowCatalog, catalog_with
from .refusals import REFUSALS

TOPIC, BROKER, LOGGER, METRICS, GROUP = ResourceType
SET, DELETE, APPEND, SUBTRACT = Operation


def refusal(broker, type_, name, *changes, validate_only=True):
    with pytest.raises(ApiError) as error:
        broker.dynamic_configs.alter(
            type_, name, [Change(*change) for change in changes], validate_only=validate_only
        )
    return error.value.code.name, error.value.message


def alter(broker, type_, name, *changes, **options):
    return broker.dynamic_configs.alter(type_, name, [Change(*change) for change in changes], **options)


def test_a_topics_configs_are_set_deleted_and_stored(broker):
    alter(broker, TOPIC, "orders", ("retention.ms", SET, " 5000 "), ("preallocate", SET, "true"))
    assert broker.topics.get("orders").configs == {"retention.ms": " 5000 ", "preallocate": "true"}
    alter(broker, TOPIC, "orders", ("preallocate", DELETE, None), ("flush.ms", DELETE, "whatever"))
    assert broker.topics.get("orders").configs == {"retention.ms": " 5000 "}
    assert broker.catalog.snapshot().configs == [(TOPIC, "orders", "retention.ms", " 5000 ")]


def test_lists_are_appended_to_and_subtracted_from(broker):
    def policy():
        return broker.topics.get("orders").configs["cleanup.policy"]

    alter(broker, TOPIC, "orders", ("cleanup.policy", APPEND, "compact,delete"))
    assert policy() == "delete,compact"
    alter(broker, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete, delete,"))
    assert policy() == "compact"
    alter(broker, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "compact"))
    assert policy() == ""


def test_validate_only_changes_nothing(broker):
    alter(broker, TOPIC, "orders", ("retention.ms", SET, "5"), validate_only=True)
    assert broker.topics.get("orders").configs == {}
    assert broker.catalog.snapshot().configs == []


@pytest.mark.parametrize(("type_", "name", "change", "code"), REFUSALS)
def test_what_kafka_refuses_is_refused_with_its_code(broker, type_, name, change, code):
    given, message = refusal(broker, type_, name, change)
    assert given == code
    assert (message is None) is (code == "UNKNOWN_SERVER_ERROR")


@pytest.mark.parametrize(
    ("type_", "name", "change", "message"),
    [
        (TOPIC, "orders", ("nope", SET, "1"), "nope: topics have no such config"),
        (TOPIC, "orders", ("retention.ms", SET, "x"), 'retention.ms: "x" is not a whole number'),
        (TOPIC, "orders", ("retention.ms", SET, None), "retention.ms: the value is missing"),
        (
            TOPIC,
            "orders",
            ("retention.ms", APPEND, "5"),
            "retention.ms: APPEND is for lists, and this is none",
        ),
        (TOPIC, "gone", ("retention.ms", SET, "1"), "There is no topic gone."),
        (BROKER, "1", ("num.partitions", SET, "3"), "num.partitions: cannot change while the broker runs"),
        (BROKER, "2", ("x", SET, "1"), "There is no broker 2 here, only broker 1."),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "1"),
            'consumer.session.timeout.ms: "1" is less than group.consumer.min.session.timeout.ms, 45000',
        ),
        (METRICS, "m", ("interval.ms", SET, "99"), 'interval.ms: "99" is not from 100 to 3600000'),
        (
            LOGGER,
            "1",
            ("root", SET, "info"),
            'root: "info" is none of the levels DEBUG, ERROR, FATAL, INFO, TRACE, WARN',
        ),
    ],
)
def test_a_refusal_names_what_was_given_and_what_is_allowed(broker, type_, name, change, message):
    assert refusal(broker, type_, name, change)[1] == message


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("num.io.threads", SET, "17"), "more than twice what is in force, 8"),
        (("num.io.threads", SET, "3"), "less than half of what is in force, 8"),
        (("log.cleaner.threads", SET, "3"), "more than twice what is in force, 1"),
        (("log.cleaner.threads", SET, "0"), "the least is 1"),
        (("log.cleaner.dedupe.buffer.size", SET, "1048576"), "1 cleaner thread(s) need more than 1048576"),
        (("max.connections.per.ip.overrides", SET, "10.0.0.1"), "max.connections.per.ip.overrides"),
        (("group.share.assignment.interval.ms", SET, "20000"), "group.share.max.assignment.interval.ms"),
    ],
)
def test_broker_values_must_fit_what_is_in_force(broker, change, problem):
    code, message = refusal(broker, BROKER, "1", change)
    assert code == "INVALID_REQUEST"
    assert problem in message


def test_thread_counts_may_move_step_by_step(broker):
    alter(broker, BROKER, "1", ("num.io.threads", SET, "16"))
    alter(broker, BROKER, "1", ("num.io.threads", SET, "32"))
    assert broker.settings["num.io.threads"] == 32


def test_the_clusters_min_insync_replicas_is_always_set_and_may_change(broker):
    alter(broker, BROKER, "", ("min.insync.replicas", SET, "2"))
    assert broker.settings.topic_default("min.insync.replicas") == 2
    assert FakeBroker(catalog=broker.catalog).settings["min.insync.replicas"] == 2


def test_kbrokers_own_settings_do_not_change_at_run_time(broker):
    assert refusal(broker, BROKER, "1", ("kbroker.fsync", SET, "true")) == (
        "INVALID_REQUEST",
        "kbroker.fsync: cannot change while the broker runs",
    )


def test_an_illegal_topic_name_is_refused(broker):
    assert refusal(broker, TOPIC, "a b", ("retention.ms", SET, "1"))[0] == "INVALID_TOPIC_EXCEPTION"


def test_a_resource_is_refused_as_a_whole(broker):
    refusal(broker, TOPIC, "orders", ("flush.ms", SET, "5"), ("retention.ms", SET, "x"), validate_only=False)
    assert broker.topics.get("orders").configs == {}


def test_a_config_may_be_named_once(broker):
    changes = (("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    assert refusal(broker, TOPIC, "orders", *changes) == (
        "INVALID_REQUEST",
        "retention.ms: named twice",
    )


@pytest.mark.parametrize(
    "change",
    [
        ("custom.name", SET, "1"),
        ("listener.name.x.max.connections", SET, "1"),
        ("leader.replication.throttled.rate", SET, "5"),
        ("log.cleanup.policy", APPEND, "compact"),
        ("num.partitions", DELETE, None),
        ("log.retention.ms", SET, "-2"),
    ],
)
@pytest.mark.parametrize("name", ["1", ""])
def test_what_kafka_takes_for_brokers_is_taken(broker, name, change):
    assert alter(broker, BROKER, name, change) is None


def test_broker_configs_are_in_force_at_once_and_after_a_restart(broker):
    alter(broker, BROKER, "", ("log.retention.ms", SET, "1000"), ("message.max.bytes", SET, "2000"))
    alter(broker, BROKER, "+1", ("log.retention.ms", SET, "3000"))
    assert broker.settings.topic_config({}).retention_ms == 3000
    assert broker.settings["message.max.bytes"] == 2000
    again = FakeBroker(Settings.load(), broker.catalog)
    assert again.settings["log.retention.ms"] == 3000
    alter(again, BROKER, "1", ("log.retention.ms", DELETE, None))
    assert again.settings["log.retention.ms"] == 1000


def test_configs_stored_for_another_broker_are_not_ours():
    catalog = catalog_with((BROKER, "2", "log.retention.ms", "5"), (99, "x", "y", "z"))
    assert FakeBroker(catalog=catalog).settings["log.retention.ms"] is None


def test_a_stored_value_that_is_no_longer_valid_is_ignored_and_logged(caplog):
    catalog = catalog_with((BROKER, "", "log.retention.ms", "soon"), (BROKER, "", "message.max.bytes", "5"))
    broker = FakeBroker(catalog=catalog)
    assert (broker.settings["log.retention.ms"], broker.settings["message.max.bytes"]) == (None, 5)
    assert 'a stored config is ignored: log.retention.ms: "soon"' in caplog.text


def test_a_client_metrics_subscription_exists_while_it_has_configs(broker):
    alter(broker, METRICS, "m", ("metrics", SET, "*"), ("match", SET, "client_id = java.*"))
    assert broker.dynamic_configs.names(METRICS) == ["m"]
    assert broker.dynamic_configs.configs(METRICS, "m")["metrics"] == "*"
    alter(broker, METRICS, "m", ("metrics", DELETE, None), ("match", DELETE, None))
    assert broker.dynamic_configs.names(METRICS) == []


def test_a_groups_session_must_outlast_its_heartbeat_interval():
    flags = {
        "group.consumer.min.session.timeout.ms": "1",
        "group.consumer.max.heartbeat.interval.ms": "90000",
    }
    broker = FakeBroker(Settings.load(flags=flags))
    changes = (("consumer.session.timeout.ms", SET, "6000"), ("consumer.heartbeat.interval.ms", SET, "6000"))
    assert refusal(broker, GROUP, "g", *changes)[1] == (
        'consumer.session.timeout.ms: "6000" is not more than consumer.heartbeat.interval.ms, 6000'
    )


def test_group_configs_override_the_brokers(broker):
    alter(broker, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    values = broker.settings.group_values(broker.dynamic_configs.configs(GROUP, "g"))
    assert (values["consumer.session.timeout.ms"], values["consumer.heartbeat.interval.ms"]) == (50000, 5000)


def test_a_loggers_level_is_set_and_unset(broker):
    logger = logging.getLogger("kbroker.test.levels")
    alter(broker, LOGGER, "1", ("kbroker.test.levels", SET, "FATAL"), validate_only=True)
    assert logger.level == logging.NOTSET
    alter(broker, LOGGER, "1", ("kbroker.test.levels", SET, "FATAL"))
    assert logger.level == logging.CRITICAL
    alter(broker, LOGGER, "1", ("kbroker.test.levels", DELETE, None))
    assert logger.level == logging.NOTSET
    assert broker.catalog.snapshot().configs == []


def test_replacing_removes_what_is_not_named(broker):
    alter(broker, TOPIC, "orders", ("retention.ms", SET, "5"), ("flush.ms", SET, "6"))
    broker.dynamic_configs.replace(TOPIC, "orders", [("flush.ms", "7")])
    assert broker.topics.get("orders").configs == {"flush.ms": "7"}
    broker.dynamic_configs.replace(TOPIC, "orders", [])
    assert broker.topics.get("orders").configs == {}


def test_listeners_are_told_what_changed(broker):
    told = []
    broker.dynamic_configs.on_change(lambda *change: told.append(change))
    alter(broker, TOPIC, "orders", ("retention.ms", SET, "5"), ("flush.ms", SET, "6"))
    alter(broker, TOPIC, "orders", ("retention.ms", SET, "5"), ("flush.ms", DELETE, None))
    alter(broker, TOPIC, "orders", ("retention.ms", SET, "5"))
    alter(broker, BROKER, "", ("message.max.bytes", SET, "6"))
    assert told == [
        (TOPIC, "orders", frozenset(("retention.ms", "flush.ms"))),
        (TOPIC, "orders", frozenset(("flush.ms",))),
        (BROKER, "", frozenset(("message.max.bytes",))),
    ]


def test_a_change_is_in_force_once_it_is_stored():
    broker = FakeBroker(catalog=SlowCatalog())
    told = []
    broker.dynamic_configs.on_change(lambda *change: told.append(change))
    altering = alter(broker, BROKER, "", ("message.max.bytes", SET, "6"))
    assert not altering.done
    assert broker.settings["message.max.bytes"] == 1048588
    broker.catalog.writes[0].resolve(None)
    assert altering.done
    assert broker.settings["message.max.bytes"] == 6
    assert len(told) == 1


def test_overlapping_changes_build_on_each_other():
    broker = FakeBroker(catalog=SlowCatalog())
    first = alter(broker, TOPIC, "orders", ("cleanup.policy", APPEND, "compact"))
    second = alter(broker, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete"))
    for write in broker.catalog.writes:
        write.resolve(None)
    assert first.done
    assert second.done
    assert broker.topics.get("orders").configs == {"cleanup.policy": "compact"}


def test_a_change_that_cannot_be_stored_fails_and_is_not_in_force():
    broker = FakeBroker(catalog=SlowCatalog())
    altering = alter(broker, TOPIC, "orders", ("retention.ms", SET, "5"))
    broker.catalog.writes[0].fail(OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        altering.result()
    assert broker.topics.get("orders").configs == {}


def test_a_topic_recreated_meanwhile_does_not_inherit_the_change():
    broker = FakeBroker(catalog=SlowCatalog())
    altering = alter(broker, TOPIC, "orders", ("retention.ms", SET, "5"))
    broker.topics.recreate("orders")
    broker.catalog.writes[0].resolve(None)
    assert altering.done
    assert broker.topics.get("orders").configs == {}


def test_the_code_of_a_refusal_is_an_error_code(broker):
    with pytest.raises(ApiError) as error:
        DynamicConfigs(broker.settings, broker.catalog, [], broker.topics).replace(
            LOGGER, "1", [("root", "INFO")]
        )
    assert error.value.code is ErrorCode.INVALID_REQUEST
