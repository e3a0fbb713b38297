"""A producer with a transactional id, at any version of its requests."""

from __future__ import annotations

from typing import Any

from kbroker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kbroker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kbroker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kbroker.protocol.messages.end_txn import EndTxnRequest
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.handlers.conftest import NOW_MS, Cluster


class TransactionalProducer:
    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self._sequence = 0

    def init(self, version: int = 4, timeout_ms: int = 60_000, **fields: Any) -> Any:
        """The answer; the producer goes on with what it says."""
        request = InitProducerIdRequest(self.transactional_id, timeout_ms, **fields)
        answer = self.cluster.send(request, version)
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequence = 0
        return answer

    def add(self, topic: str, *partitions: int, version: int = 3, **fields: Any) -> dict[int, int]:
        """Partition -> error code."""
        request = AddPartitionsToTxnRequest(
            **{
                "v3_and_below_transactional_id": self.transactional_id,
                "v3_and_below_producer_id": self.producer_id,
                "v3_and_below_producer_epoch": self.epoch,
                "v3_and_below_topics": [AddPartitionsToTxnTopic(topic, list(partitions or (0,)))],
                **fields,
            }
        )
        (answered,) = self.cluster.send(request, version).results_by_topic_v3_and_below
        return {each.partition_index: each.partition_error_code for each in answered.results_by_partition}

    def add_offsets(self, group: str, version: int = 3, **fields: Any) -> int:
        """The error code."""
        own = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }
        code: int = self.cluster.send(
            AddOffsetsToTxnRequest(**{**own, **fields}, group_id=group), version
        ).error_code
        return code

    def produce(self, topic: str, partition: int = 0, version: int = 12) -> int:
        """Write one record; the error code."""
        batch = build_batch(
            [Record(NOW_MS, b"k", b"v")],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(partition, batch)])
        answer = self.cluster.send(ProduceRequest(self.transactional_id, -1, 1000, [data]), version)
        code: int = answer.responses[0].partition_responses[0].error_code
        self._sequence += not code
        return code

    def end(self, *, commit: bool = True, version: int = 3, **fields: Any) -> Any:
        """The answer; the producer goes on with what it says."""
        own = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }
        answer = self.cluster.send(EndTxnRequest(**{**own, **fields}, committed=commit), version)
        if not answer.error_code and answer.producer_id >= 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequence = 0
        return answer

    def describe(self) -> Any:
        """The transaction's part of DescribeTransactions."""
        (state,) = self.cluster.send(
            DescribeTransactionsRequest([self.transactional_id]), 0
        ).transaction_states
        return state

    @property
    def partitions(self) -> dict[str, list[int]]:
        """Those of the open transaction."""
        return {topic.topic: sorted(topic.partitions) for topic in self.describe().topics}
