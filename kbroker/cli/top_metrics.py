"""A look at a kbroker by its /metrics: all that there is to see, in one request."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from math import isnan
from typing import NamedTuple

from kbroker.cli import http_port
from kbroker.cli.top_look import ApiLook, GroupLook, Look, TopicLook
from kbroker.exit_codes import UNREACHABLE
from kbroker.topics.names import INTERNAL_TOPICS

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")

Labels = dict[str, str]


class Sample(NamedTuple):
    name: str
    labels: Labels
    value: float


def look(arguments: argparse.Namespace) -> Look:
    started = time.monotonic()
    text = http_port.text(arguments, "/metrics")
    return read(text, time.monotonic(), arguments.http, (time.monotonic() - started) * 1000)


def read(text: str, at: float, url: str = "", answer_ms: float | None = None) -> Look:
    """The look that a text of metrics tells. Families that it has not are not known."""
    found = Look(at=at, source="metrics", cluster_id=None, brokers=[], apis={}, answer_ms=answer_ms)
    for sample in samples(text):
        _TAKEN[sample.name](found, sample.labels, sample.value)
    for name in INTERNAL_TOPICS:
        found.topics.pop(name, None)
    if found.cluster_id is None:
        raise http_port.Unreachable(f"{url} has no metrics of a kbroker", UNREACHABLE)
    return found


def samples(text: str) -> Iterator[Sample]:
    """Those that a look takes: of tens of thousands of lines most are passed over."""
    for line in text.split("\n"):
        name = line.partition("{")[0].partition(" ")[0]
        if name in _TAKEN:
            labels = {key: _unescaped(value) for key, value in _LABEL.findall(line)} if "{" in line else {}
            yield Sample(name, labels, float(line.rpartition(" ")[2]))


def _unescaped(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], value)


def _topic(found: Look, name: str) -> TopicLook:
    topic = found.topics.get(name)
    if topic is None:
        topic = found.topics[name] = TopicLook(records=0, bytes_in=0, bytes_out=0, log_bytes=0)
    return topic


def _group(found: Look, name: str) -> GroupLook:
    return found.groups.setdefault(name, GroupLook())


def _api(found: Look, name: str) -> ApiLook:
    assert found.apis is not None
    return found.apis.setdefault(name, ApiLook())


def _build(found: Look, labels: Labels, value: float) -> None:
    found.cluster_id = labels["cluster_id"]


def _broker(found: Look, labels: Labels, value: float) -> None:
    host, _, port = labels["address"].rpartition(":")
    found.brokers.append({"id": int(labels["id"]), "host": host, "port": int(port)})


def _partitions(found: Look, labels: Labels, value: float) -> None:
    _topic(found, labels["topic"]).partitions = int(value)


def _of_topic(attribute: str) -> Take:
    """The series without a topic is that of all, also of deleted ones."""

    def take(found: Look, labels: Labels, value: float) -> None:
        if "topic" in labels:
            setattr(_topic(found, labels["topic"]), attribute, value)

    return take


def _log_size(found: Look, labels: Labels, value: float) -> None:
    topic = _topic(found, labels["topic"])
    if not isnan(value):  # it can be read
        topic.log_bytes = (topic.log_bytes or 0) + value


def _lag(found: Look, labels: Labels, value: float) -> None:
    group = _group(found, labels["consumergroup"])
    group.lag = (group.lag or 0) + value


def _lag_seconds(found: Look, labels: Labels, value: float) -> None:
    group = _group(found, labels["consumergroup"])
    group.lag_seconds = max(group.lag_seconds or 0, value)


def _position(found: Look, labels: Labels, value: float) -> None:
    _group(found, labels["consumergroup"]).position += value


def _members(found: Look, labels: Labels, value: float) -> None:
    _group(found, labels["consumergroup"]).members = int(value)


def _share_lag(found: Look, labels: Labels, value: float) -> None:
    group = _group(found, labels["group"])
    group.type = "share"
    group.lag = (group.lag or 0) + value


def _acknowledged(found: Look, labels: Labels, value: float) -> None:
    group = _group(found, labels["group"])
    group.type = "share"
    group.position = value


def _requests(found: Look, labels: Labels, value: float) -> None:
    _api(found, labels["api"]).count = value


def _errors(found: Look, labels: Labels, value: float) -> None:
    _api(found, labels["api"]).errors += value


def _seconds(found: Look, labels: Labels, value: float) -> None:
    _api(found, labels["api"]).seconds = value


def _bucket(found: Look, labels: Labels, value: float) -> None:
    _api(found, labels["api"]).buckets[float(labels["le"])] = value


def _of_process(attribute: str) -> Take:
    def take(found: Look, labels: Labels, value: float) -> None:
        setattr(found.process, attribute, value)

    return take


def _connections(found: Look, labels: Labels, value: float) -> None:
    found.process.connections = (found.process.connections or 0) + value


def _disk(attribute: str) -> Take:
    def take(found: Look, labels: Labels, value: float) -> None:
        setattr(found, attribute, value)

    return take


def _left_out(found: Look, labels: Labels, value: float) -> None:
    if labels["metric"] in _TAKEN:
        found.left_out += int(value)


Take = Callable[[Look, Labels, float], None]

_TAKEN: dict[str, Take] = {
    "kbroker_build_info": _build,
    "kafka_broker_info": _broker,
    "kafka_topic_partitions": _partitions,
    "kafka_server_brokertopicmetrics_messagesin_total": _of_topic("records"),
    "kafka_server_brokertopicmetrics_bytesin_total": _of_topic("bytes_in"),
    "kafka_server_brokertopicmetrics_bytesout_total": _of_topic("bytes_out"),
    "kafka_log_log_size": _log_size,
    "kafka_consumergroup_lag_sum": _lag,
    "kbroker_consumergroup_lag_seconds": _lag_seconds,
    "kafka_consumergroup_current_offset_sum": _position,
    "kafka_consumergroup_members": _members,
    "kbroker_share_lag_records": _share_lag,
    "kbroker_share_acknowledged_records_total": _acknowledged,
    "kbroker_requests_total": _requests,
    "kbroker_request_errors_total": _errors,
    "kbroker_request_seconds_sum": _seconds,
    "kbroker_request_seconds_bucket": _bucket,
    "kafka_server_socket_server_metrics_connection_count": _connections,
    "process_resident_memory_bytes": _of_process("memory_bytes"),
    "process_cpu_seconds_total": _of_process("cpu_seconds"),
    "process_start_time_seconds": _of_process("started"),
    "process_open_fds": _of_process("open_files"),
    "process_max_fds": _of_process("most_files"),
    "kbroker_disk_total_bytes": _disk("disk_total_bytes"),
    "kbroker_disk_usable_bytes": _disk("disk_usable_bytes"),
    "kbroker_metrics_left_out": _left_out,
}
"""What a look takes: name of a series → where it goes."""
