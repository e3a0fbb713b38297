"""Members of a share group, each with a connection of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kbroker.config.resources import ResourceType
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages import share_acknowledge, share_fetch
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kbroker.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kbroker.protocol.messages.share_fetch import ForgottenTopic, ShareFetchRequest
from kbroker.protocol.records import iter_batches
from kbroker.requests.session import Requests, Session
from kbroker.topics.registry import Topic

from .conftest import Cluster

GROUP = "g"
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
Acks = Mapping[int, Sequence[tuple[int, int, Sequence[int]]]]


def initialize(cluster: Cluster, topic: Topic, group_id: str = GROUP, **configs: str) -> None:
    """Let a group have all partitions of the topic, and these configs (share.…, with _ for '.')."""
    configure(cluster, group_id, **{"share_auto_offset_reset": "earliest", **configs})
    partitions = [(topic.topic_id, number) for number in range(topic.partitions)]
    cluster.broker.share_states.initialize(group_id, partitions).result()


def configure(cluster: Cluster, group_id: str = GROUP, **configs: str) -> None:
    altered = [AlterableConfig(name.replace("_", "."), 0, value) for name, value in configs.items()]
    resource = AlterConfigsResource(ResourceType.GROUP, group_id, altered)
    (answer,) = cluster.send(IncrementalAlterConfigsRequest([resource]), 1).responses
    assert answer.error_code == ErrorCode.NONE, answer.error_message


class ShareMember:
    """It counts the epochs of its session. A topic's partitions are asked for by number."""

    def __init__(self, cluster: Cluster, topic: Topic, member_id: str = "one", group_id: str = GROUP) -> None:
        self.cluster = cluster
        self.topic_id = topic.topic_id
        self.member_id = member_id
        self.group_id = group_id
        self.epoch = 0
        self.connect()

    def connect(self) -> None:
        requests = Requests(self.cluster.broker)
        self.session = Session(requests, "PLAINTEXT", ("127.0.0.1", 19092), ("127.0.0.1", 54321))

    def disconnect(self) -> None:
        self.session.end()

    def fetch(
        self,
        *partitions: int,
        acks: Acks | None = None,
        forget: Sequence[int] = (),
        epoch: int | None = None,
        version: int = 2,
        topic_id: bytes | None = None,
        **fields: Any,
    ) -> Any:
        listed = dict.fromkeys(partitions, ()) | dict(acks or {})
        topic_id = topic_id or self.topic_id
        request = ShareFetchRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "share_session_epoch": self._next(epoch),
                "min_bytes": 1,
                "max_bytes": 1 << 20,
                "max_records": 500,
                "batch_size": 500,
                "topics": [share_fetch.FetchTopic(topic_id, self._listed(share_fetch, listed))]
                if listed
                else [],
                "forgotten_topics_data": [ForgottenTopic(topic_id, list(forget))] if forget else [],
                **fields,
            }
        )
        return self._send(request, version)

    def acknowledge(
        self,
        acks: Acks | None = None,
        *,
        epoch: int | None = None,
        version: int = 2,
        topic_id: bytes | None = None,
        **fields: Any,
    ) -> Any:
        partitions = self._listed(share_acknowledge, acks or {})
        topics = [share_acknowledge.AcknowledgeTopic(topic_id or self.topic_id, partitions)]
        request = ShareAcknowledgeRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "share_session_epoch": self._next(epoch),
                "topics": topics if partitions else [],
                **fields,
            }
        )
        return self._send(request, version)

    def _send(self, request: Any, version: int) -> Any:
        connected, self.cluster._connected = self.cluster._connected, (self.cluster.broker, self.session)
        try:
            return self.cluster.send(request, version)
        finally:
            self.cluster._connected = connected

    def _next(self, epoch: int | None) -> int:
        epoch = self.epoch if epoch is None else epoch
        if epoch >= 0:
            self.epoch = epoch + 1
        return epoch

    def _listed(self, messages: Any, listed: Mapping[int, Any]) -> list[Any]:
        kind = getattr(messages, "FetchPartition", None) or messages.AcknowledgePartition
        return [
            kind(
                number,
                [messages.AcknowledgementBatch(first, last, list(types)) for first, last, types in acks],
            )
            for number, acks in listed.items()
        ]


def acquired(answer: Any) -> dict[int, list[tuple[int, int, int]]]:
    """First offset, last offset, delivery count, by partition."""
    assert not isinstance(answer, Pending), "it waits"
    assert answer.error_code == ErrorCode.NONE
    return {
        data.partition_index: [
            (each.first_offset, each.last_offset, each.delivery_count) for each in data.acquired_records
        ]
        for topic in answer.responses
        for data in topic.partitions
    }


def codes(answer: Any) -> dict[int, Any]:
    """The error codes by partition: of the fetch and of its acknowledgements, or of these alone."""
    assert answer.error_code == ErrorCode.NONE
    return {
        data.partition_index: (data.error_code, data.acknowledge_error_code)
        if hasattr(data, "acknowledge_error_code")
        else data.error_code
        for topic in answer.responses
        for data in topic.partitions
    }


def batches(answer: Any, partition: int = 0) -> list[tuple[int, int]]:
    """First and last offset of each batch that came."""
    (data,) = (
        data for topic in answer.responses for data in topic.partitions if data.partition_index == partition
    )
    return [(header.base_offset, header.last_offset) for _, header in iter_batches(bytes(data.records))]
