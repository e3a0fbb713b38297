"""The configs of groups and of client metrics subscriptions."""

from __future__ import annotations

from kbroker.config.coordinator_configs import ADAPTIVE_INTERVAL
from kbroker.config.definition import BOOLEAN, INT, LIST, STRING, Update, accepted, honoured, table
from kbroker.config.validators import ListOf, OneOf, Range, ShareOffsetReset

_ANY_TIME = Update.CLUSTER_WIDE
_FROM_0 = Range(0)
_FROM_1 = Range(1)

# fmt: off
# A group config's default is the broker config named last, within the broker's minimum and maximum for it.
# One that is only accepted belongs to a kind of group that is not there: it cannot be set and is not shown.
GROUP_CONFIGS = table((
    honoured("consumer.assignment.interval.ms", INT, 1000,
        "Shortest time between two target assignments of a consumer group.",
        _FROM_0, _ANY_TIME, ("group.consumer.assignment.interval.ms",), unset=ADAPTIVE_INTERVAL),
    honoured("consumer.heartbeat.interval.ms", INT, 5000,
        "How often members of a consumer group send a heartbeat.",
        _FROM_1, _ANY_TIME, ("group.consumer.heartbeat.interval.ms",)),
    honoured("consumer.session.timeout.ms", INT, 45_000,
        "Silence after which a member of a consumer group is removed.",
        _FROM_1, _ANY_TIME, ("group.consumer.session.timeout.ms",)),
    accepted("share.assignment.interval.ms", INT, 1000,
        "Shortest time between two target assignments of a share group.",
        _FROM_0, _ANY_TIME, ("group.share.assignment.interval.ms",)),
    accepted("share.auto.offset.reset", STRING, "latest",
        "Where a share group starts in a partition it has not read: latest, earliest, or a duration ago.",
        ShareOffsetReset(), _ANY_TIME),
    accepted("share.delivery.count.limit", INT, 5,
        "How often a share group delivers a record before it gives it up.",
        Range(2), _ANY_TIME, ("group.share.delivery.count.limit",)),
    accepted("share.heartbeat.interval.ms", INT, 5000,
        "How often members of a share group send a heartbeat.",
        _FROM_1, _ANY_TIME, ("group.share.heartbeat.interval.ms",)),
    accepted("share.isolation.level", STRING, "read_uncommitted",
        "Whether a share group reads records of open and aborted transactions.",
        OneOf("read_committed", "read_uncommitted"), _ANY_TIME),
    accepted("share.partition.max.record.locks", INT, 2000,
        "Records of one partition that a share group may have in delivery at once.",
        Range(100), _ANY_TIME, ("group.share.partition.max.record.locks",)),
    accepted("share.record.lock.duration.ms", INT, 30_000,
        "How long a share group's member may hold a record before it goes to another.",
        Range(1000), _ANY_TIME, ("group.share.record.lock.duration.ms",)),
    accepted("share.renew.acknowledge.enable", BOOLEAN, True,
        "Whether a share group's member may prolong its hold on a record.",
        None, _ANY_TIME),
    accepted("share.session.timeout.ms", INT, 45_000,
        "Silence after which a member of a share group is removed.",
        _FROM_1, _ANY_TIME, ("group.share.session.timeout.ms",)),
    accepted("streams.assignment.interval.ms", INT, 1000,
        "Shortest time between two target assignments of a streams group.",
        _FROM_0, _ANY_TIME, ("group.streams.assignment.interval.ms",)),
    accepted("streams.heartbeat.interval.ms", INT, 5000,
        "How often members of a streams group send a heartbeat.",
        _FROM_1, _ANY_TIME, ("group.streams.heartbeat.interval.ms",)),
    accepted("streams.initial.rebalance.delay.ms", INT, 3000,
        "How long an empty streams group waits for more members before its first assignment.",
        _FROM_0, _ANY_TIME, ("group.streams.initial.rebalance.delay.ms",)),
    accepted("streams.num.standby.replicas", INT, 0,
        "Standby copies of each stateful task of a streams group.",
        _FROM_0, _ANY_TIME, ("group.streams.num.standby.replicas",)),
    accepted("streams.session.timeout.ms", INT, 45_000,
        "Silence after which a member of a streams group is removed.",
        _FROM_1, _ANY_TIME, ("group.streams.session.timeout.ms",)),
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
