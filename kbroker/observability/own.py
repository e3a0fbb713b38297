"""What neither kafka_exporter nor Kafka's dashboards have a name for."""

from __future__ import annotations

from kbroker import __version__
from kbroker.observability.families import GAUGE, value, values

FAMILIES = (
    values(
        "kbroker_build_info",
        GAUGE,
        "1, with the version and the id of the cluster.",
        ("version", "cluster_id"),
        lambda broker: [((__version__, broker.cluster.cluster_id), 1)],
    ),
    value("kbroker_topics", GAUGE, "Topics.", lambda broker: len(broker.topics)),
    value("kbroker_partitions", GAUGE, "Partitions.", lambda broker: broker.topics.partition_count),
    value(
        "kbroker_open_partitions",
        GAUGE,
        "Partitions whose logs are open: the others nobody has asked for since the start.",
        lambda broker: len(broker.open_logs),
    ),
)
