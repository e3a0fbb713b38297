"""Commits of offsets, and what a fetch of them shows."""

from __future__ import annotations

from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

UNKNOWN_ID = b"nobody knows me!"


HAS_ONE = [(0, 42, "m", 0), (1, -1, "", 0)]


def commit(cluster, version, *topics, **fields):
    """Commit partition 0 of each topic, given by name or id; returns the error codes."""
    asked = [
        OffsetCommitRequestTopic(
            **({"topic_id": topic} if version >= 10 else {"name": topic}),
            partitions=[OffsetCommitRequestPartition(0, 42, committed_metadata="m")],
        )
        for topic in topics
    ]
    response = cluster.send(OffsetCommitRequest(fields.pop("group_id", "g"), topics=asked, **fields), version)
    answered = [topic.topic_id if version >= 10 else topic.name for topic in response.topics]
    assert answered == list(topics)
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


def fetched(partitions):
    return [(p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in partitions]
