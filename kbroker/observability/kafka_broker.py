"""The broker metrics that Strimzi's dashboards show, by the names that they have there.

Those of the JVM are not there, and what only a cluster of several brokers has is constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from kbroker.observability.families import COUNTER, GAUGE, Family, Number, text_of, value, values
from kbroker.observability.partition_series import by_partition, of_every_partition, size_bytes
from kbroker.observability.topic_totals import by_topic

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.exposition import Exposition

_PRODUCE, _FETCH = 0, 1
_TOPICS = "kafka_server_brokertopicmetrics_"
_REPLICAS = "kafka_server_replicamanager_"


class Idleness:
    """Of the event loop's thread, from one scrape to the next."""

    def __init__(self, broker: Broker) -> None:
        self._scrape = 0
        self._wall = perf_counter()
        self._busy = thread_time()
        self.idle = 1.0

    def look(self, scrape: int) -> float:
        if scrape != self._scrape:
            self._scrape = scrape
            wall, busy = perf_counter(), thread_time()
            if wall > self._wall:
                self.idle = min(max(1 - (busy - self._busy) / (wall - self._wall), 0.0), 1.0)
            self._wall, self._busy = wall, busy
        return self.idle


def _idle(name: str, doc: str) -> Family:
    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        yield f"{name} {text_of(round(exposition.kept(Idleness).look(exposition.scrapes), 4))}\n"

    return Family(name, GAUGE, doc, (), write)


def _connections(broker: Broker) -> Iterator[tuple[tuple[str, ...], Number]]:
    for listener, traffic in broker.traffic.listeners.items():
        yield (listener, "0"), traffic.came - traffic.went


def _disk_bytes(field: str) -> int | None:
    try:
        for line in Path("/proc/self/io").read_text().splitlines():
            name, _, number = line.partition(": ")
            if name == field:
                return int(number)
    except (OSError, ValueError):
        pass
    return None


def _failed(broker: Broker, api_key: int) -> int:
    return sum(broker.traffic.by_key[api_key].errors.values())


def _partitions(broker: Broker) -> int:
    return broker.topics.partition_count


def _none(broker: Broker) -> int:
    return 0


FAMILIES = (
    by_topic(f"{_TOPICS}messagesin_total", "Records appended.", lambda totals: totals.records),
    by_topic(f"{_TOPICS}bytesin_total", "Bytes of batches appended.", lambda totals: totals.bytes_in),
    by_topic(f"{_TOPICS}bytesout_total", "Bytes of batches fetched.", lambda totals: totals.fetched_bytes),
    by_topic(
        f"{_TOPICS}totalproducerequests_total",
        "Batches appended, one for each partition of a Produce.",
        lambda totals: totals.appends,
    ),
    by_topic(
        f"{_TOPICS}totalfetchrequests_total",
        "Partitions of Fetches that got records.",
        lambda totals: totals.fetches,
    ),
    value(
        f"{_TOPICS}failedproducerequests_total",
        COUNTER,
        "Partitions of Produces that were refused.",
        lambda broker: _failed(broker, _PRODUCE),
    ),
    value(
        f"{_TOPICS}failedfetchrequests_total",
        COUNTER,
        "Partitions of Fetches that were refused.",
        lambda broker: _failed(broker, _FETCH),
    ),
    value(f"{_REPLICAS}partitioncount", GAUGE, "Partitions on this broker.", _partitions),
    value(f"{_REPLICAS}leadercount", GAUGE, "Partitions that this broker leads.", _partitions),
    value(f"{_REPLICAS}underreplicatedpartitions", GAUGE, "Always 0: there is one broker.", _none),
    value(f"{_REPLICAS}underminisrpartitioncount", GAUGE, "Always 0: there is one broker.", _none),
    value(f"{_REPLICAS}offlinereplicacount", GAUGE, "Always 0: there is one broker.", _none),
    value(
        "kafka_controller_kafkacontroller_activecontrollercount",
        GAUGE,
        "1: this broker is the controller.",
        lambda broker: 1,
    ),
    value(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        GAUGE,
        "Always 0: there is one broker.",
        _none,
    ),
    value(
        "kafka_controller_kafkacontroller_globaltopiccount",
        GAUGE,
        "Topics.",
        lambda broker: len(broker.topics),
    ),
    value("kafka_controller_kafkacontroller_globalpartitioncount", GAUGE, "Partitions.", _partitions),
    value(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        COUNTER,
        "Always 0: there is one broker.",
        _none,
    ),
    of_every_partition("kafka_cluster_partition_underminisr", "Always 0: there is one broker.", _none),
    of_every_partition(
        "kafka_cluster_partition_atminisr",
        "Always 1: one replica is as many as there may be.",
        lambda broker: 1,
    ),
    by_partition("kafka_log_log_size", "Bytes of a partition's records.", size_bytes),
    value(
        "kafka_log_logmanager_offlinelogdirectorycount",
        GAUGE,
        "Always 0: without its data directory a broker does not run.",
        _none,
    ),
    _idle(
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "Share of the time, from 0 to 1, that the event loop had nothing to do since the last scrape.",
    ),
    _idle(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "The same: there is one loop."
    ),
    values(
        "kafka_server_socket_server_metrics_connection_count",
        GAUGE,
        "Open connections.",
        ("listener", "networkprocessor"),
        _connections,
    ),
    value(
        "kafka_server_kafkaserver_linux_disk_read_bytes",
        GAUGE,
        "Bytes that this process had read from disks.",
        lambda broker: _disk_bytes("read_bytes"),
    ),
    value(
        "kafka_server_kafkaserver_linux_disk_write_bytes",
        GAUGE,
        "Bytes that this process had written to disks.",
        lambda broker: _disk_bytes("write_bytes"),
    ),
)
