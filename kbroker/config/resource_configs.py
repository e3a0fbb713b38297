"""The configs of groups and of client metrics subscriptions."""

from __future__ import annotations

from typing import Any

from kbroker.config.coordinator_configs import COORDINATOR_CONFIGS
from kbroker.config.definition import BOOLEAN, INT, LIST, STRING, ConfigDef, Update, honoured, table
from kbroker.config.validators import ListOf, OneOf, Range, ShareOffsetReset

_ANY_TIME = Update.CLUSTER_WIDE
_BROKER_CONFIGS = table(COORDINATOR_CONFIGS)


def _group(name: str, **differing: Any) -> ConfigDef:
    """The group config whose default is the broker config of the same name after ``group.``."""
    prefix = "kbroker." if name.startswith("kbroker.") else ""
    default = _BROKER_CONFIGS[f"{prefix}group.{name.removeprefix(prefix)}"]
    return default._replace(name=name, update=_ANY_TIME, synonyms=(default.name,), **differing)


def _kip_1191(name: str) -> ConfigDef:
    """Kafka has no default of the broker for it."""
    default = _BROKER_CONFIGS[f"kbroker.group.{name}"]
    return default._replace(name=name, update=_ANY_TIME, synonyms=(default.name,))


# fmt: off
# The value of a group config lies within the broker's minimum and maximum for it.
# One that is only accepted belongs to a kind of group that is not there: it cannot be set and is not shown.
GROUP_CONFIGS = table((
    _group("consumer.assignment.interval.ms"),
    _group("consumer.heartbeat.interval.ms"),
    _group("consumer.session.timeout.ms"),
    _kip_1191("errors.deadletterqueue.copy.record.enable"),
    _kip_1191("errors.deadletterqueue.topic.name"),
    _group("kbroker.share.retry.backoff.max.ms"),
    _group("kbroker.share.retry.backoff.ms"),
    _group("kbroker.share.retry.backoff.multiplier"),
    _group("share.assignment.interval.ms"),
    honoured("share.auto.offset.reset", STRING, "latest",
        "Where a share group starts in a partition it has not read: latest, earliest, or a duration ago.",
        ShareOffsetReset(), _ANY_TIME),
    _group("share.delivery.count.limit", validator=Range(2)),
    _group("share.heartbeat.interval.ms"),
    honoured("share.isolation.level", STRING, "read_uncommitted",
        "Whether a share group reads records of open and aborted transactions.",
        OneOf("read_committed", "read_uncommitted"), _ANY_TIME),
    _group("share.partition.max.record.locks", validator=Range(100)),
    _group("share.record.lock.duration.ms", validator=Range(1000)),
    honoured("share.renew.acknowledge.enable", BOOLEAN, True,
        "Whether a share group's member may prolong its hold on a record.",
        None, _ANY_TIME),
    _group("share.session.timeout.ms"),
    _group("streams.assignment.interval.ms"),
    _group("streams.heartbeat.interval.ms"),
    _group("streams.initial.rebalance.delay.ms"),
    _group("streams.num.standby.replicas"),
    _group("streams.session.timeout.ms"),
))

CLIENT_METRICS_CONFIGS = table((
    honoured("interval.ms", INT, 300_000,
        "How often a client pushes its metrics.",
        None, _ANY_TIME),
    honoured("match", LIST, (),
        "Which clients are meant, as name=regular expression pairs; none means all.",
        ListOf(), _ANY_TIME),
    honoured("metrics", LIST, (),
        "Prefixes of the names of the metrics wanted; * means all, none means none.",
        ListOf(), _ANY_TIME),
))
