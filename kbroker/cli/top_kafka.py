"""A look at any Kafka, as far as its protocol allows: offsets tell of records, log directories of bytes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kbroker.cli import connection
from kbroker.cli.group_facts import groups_with_lag
from kbroker.cli.ping import took_ms
from kbroker.cli.top_look import GroupLook, Look, TopicLook
from kbroker.exit_codes import CommandFailed

_TRIES = 3
"""Also of an error that is for good, by its code: a group that went is not there at the next try."""


def look(client: Any, arguments: argparse.Namespace) -> Look:
    """By an admin client of kafka-python; again where topics or groups went, or moved, while it looked."""
    deadline = time.monotonic() + arguments.timeout
    tries = 0
    while True:
        try:
            return _look(client, arguments)
        except (CommandFailed, connection.kafka().errors.KafkaError) as error:
            tries += 1
            passing = tries < _TRIES or getattr(error, "retriable", False)
            if not passing or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _look(client: Any, arguments: argparse.Namespace) -> Look:
    cluster = client.describe_cluster()
    topics = [
        topic for topic in client.describe_topics() if not topic["error_code"] and not topic["is_internal"]
    ]
    ends = _ends(client, topics)
    found = Look(
        at=time.monotonic(),  # the offsets are of now; what follows may take its time
        source="kafka",
        cluster_id=cluster["cluster_id"],
        brokers=[
            {"id": each["broker_id"], "host": each["host"], "port": each["port"]}
            for each in sorted(cluster["brokers"], key=lambda broker: int(broker["broker_id"]))
        ],
        topics={
            str(topic["name"]): TopicLook(
                partitions=len(topic["partitions"]),
                records=_sum_of_ends(ends, topic),
            )
            for topic in topics
        },
        answer_ms=_answer_ms(arguments),
    )
    with suppress(connection.kafka().errors.KafkaError):  # not everybody may see it
        _add_sizes(found, client.describe_log_dirs())
    for group in groups_with_lag(client, arguments):
        found.groups[group["group"]] = _group(group)
    return found


Ends = dict[tuple[str, int], int]


def _ends(client: Any, topics: Sequence[dict[str, Any]]) -> Ends:
    """Of the partitions that have a leader to ask."""
    module = connection.kafka()
    wanted = {
        module.TopicPartition(topic["name"], each["partition_index"]): module.admin.OffsetSpec.LATEST
        for topic in topics
        for each in topic["partitions"]
        if each["leader_id"] >= 0
    }
    told = client.list_partition_offsets(wanted) if wanted else {}
    return {(at.topic, at.partition): each.offset for at, each in told.items()}


def _sum_of_ends(ends: Ends, topic: dict[str, Any]) -> int | None:
    found = [ends.get((topic["name"], each["partition_index"])) for each in topic["partitions"]]
    known = [end for end in found if end is not None]
    return sum(known) if len(known) == len(found) else None


def _answer_ms(arguments: argparse.Namespace) -> float | None:
    """Of the first address that answers."""
    tls = connection.tls_context(arguments)
    for address in connection.addresses(arguments.bootstrap):
        with suppress(OSError):
            return took_ms(address, arguments.timeout, tls)
    return None


def _add_sizes(found: Look, brokers: Sequence[dict[str, Any]]) -> None:
    """Replicas count each by itself: this is what is on the disks."""
    directories = [each for broker in brokers for each in broker["log_dirs"] if not each["error_code"]]
    if not directories:
        return
    for topic in found.topics.values():
        topic.log_bytes = 0
    for directory in directories:
        for told in directory["topics"]:
            if told["name"] in found.topics:
                size = sum(each["partition_size"] for each in told["partitions"])
                of_topic = found.topics[told["name"]]
                of_topic.log_bytes = (of_topic.log_bytes or 0) + size
    found.disk_total_bytes = _added(directories, "total_bytes")
    found.disk_usable_bytes = _added(directories, "usable_bytes")


def _added(directories: Sequence[dict[str, Any]], key: str) -> float | None:
    """Brokers before Kafka 3.3 do not tell it."""
    known = [each[key] for each in directories if each.get(key, -1) >= 0]
    return sum(known) if known else None


def _group(group: dict[str, Any]) -> GroupLook:
    rows = group["lag"]
    lags = [row["lag"] for row in rows if row["lag"] is not None]
    positions = [
        row["start_offset"] if row["committed_offset"] is None else row["committed_offset"] for row in rows
    ]
    return GroupLook(
        type=group["type"],
        state=group["state"],
        members=len(group["members"]),
        lag=sum(lags) if lags else None,
        position=sum(position for position in positions if position is not None),
    )
