"""The families of kafka_exporter, by its names: dashboards know them.

Of a group's offset topics and partitions are told as far as the group has committed. Lag is told of groups
whose progress is an offset: share groups have families of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import GAUGE, value, values
from kbroker.observability.group_series import (
    by_group_partition,
    by_group_topic,
    lags_of,
    members_of,
    offsets_of,
)
from kbroker.observability.partition_series import by_partition, end_offset, of_every_partition, start_offset

if TYPE_CHECKING:
    from kbroker.broker import Broker


def _brokers(broker: Broker) -> Iterator[tuple[tuple[str, ...], int]]:
    client = broker.cluster.by_first_listener(broker.settings.listeners[0].host)
    for node in broker.cluster.nodes(client):
        yield (str(node.node_id), f"{node.host}:{node.port}"), 1


FAMILIES = (
    value("kafka_brokers", GAUGE, "Brokers of the cluster.", lambda broker: len(list(_brokers(broker)))),
    values("kafka_broker_info", GAUGE, "A broker and its address.", ("id", "address"), _brokers),
    values(
        "kafka_topic_partitions",
        GAUGE,
        "Partitions of a topic.",
        ("topic",),
        lambda broker: (((topic.name,), topic.partitions) for topic in list(broker.topics)),
    ),
    by_partition(
        "kafka_topic_partition_current_offset", "Where the next record that readers see will be.", end_offset
    ),
    by_partition("kafka_topic_partition_oldest_offset", "The log start offset.", start_offset),
    of_every_partition(
        "kafka_topic_partition_leader",
        "The broker that leads a partition.",
        lambda broker: broker.cluster.node_id,
    ),
    of_every_partition("kafka_topic_partition_replicas", "Replicas of a partition.", lambda broker: 1),
    of_every_partition("kafka_topic_partition_in_sync_replica", "Replicas in sync.", lambda broker: 1),
    of_every_partition(
        "kafka_topic_partition_leader_is_preferred",
        "1 if the preferred broker leads a partition.",
        lambda broker: 1,
    ),
    of_every_partition(
        "kafka_topic_partition_under_replicated_partition",
        "1 if a partition has fewer replicas in sync than it should.",
        lambda broker: 0,
    ),
    by_group_partition(
        "kafka_consumergroup_current_offset", "What a group has committed of a partition.", offsets_of
    ),
    by_group_topic(
        "kafka_consumergroup_current_offset_sum",
        "The sum of what a group has committed of a topic's partitions.",
        offsets_of,
    ),
    by_group_partition(
        "kafka_consumergroup_lag", "Records of a partition that a group has yet to read.", lags_of
    ),
    by_group_topic(
        "kafka_consumergroup_lag_sum", "Records of a topic that a group has yet to read.", lags_of
    ),
    values("kafka_consumergroup_members", GAUGE, "Members of a group.", ("consumergroup",), members_of),
)
