"""A transactional producer made of raw requests, that notes every answer.

What it notes is comparable between brokers: its own producer id appears as "own", epochs, offsets and error
codes as they are. Kafka writes its markers after EndTxn is answered; `settle` waits until they are there.
"""

from __future__ import annotations

from typing import Any

from compat.harness.batches import TRANSACTIONAL, Record, batch
from compat.harness.side import Side
from compat.harness.waiting import eventually

RETRY = frozenset({14, 15, 16, 51})  # loading, not available, not coordinator, concurrent transactions
PREPARED = frozenset({"PrepareCommit", "PrepareAbort"})


class RawProducer:
    def __init__(self, side: Side, transactional_id: str, topic_ids: dict[str, bytes] | None = None) -> None:
        """`topic_ids`: by name, for the versions that use them."""
        self.side = side
        self.topic_ids = topic_ids or {}
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self.notes: list[Any] = []
        self.producer_ids: list[int] = []
        self._sequences: dict[tuple[str, int, int], int] = {}

    # the requests; each notes what came back and returns the error code

    def init(
        self,
        version: int = 4,
        *,
        timeout_ms: int = 60_000,
        expected: tuple[int, int] | None = None,
        once: bool = False,
    ) -> int:
        """`expected`: producer id and epoch; `once`: CONCURRENT_TRANSACTIONS is an answer, too."""
        values: dict[str, Any] = {
            "TransactionalId": self.transactional_id,
            "TransactionTimeoutMs": timeout_ms,
        }
        if expected is not None:
            values |= {"ProducerId": expected[0], "ProducerEpoch": expected[1]}
        answer = self._ask("InitProducerId", version, values, RETRY - {51} if once else RETRY)
        if answer["ErrorCode"] == 0:
            self._become(answer["ProducerId"], answer["ProducerEpoch"])
        self._note(
            "init", version, answer["ErrorCode"], self._name(answer["ProducerId"]), answer["ProducerEpoch"]
        )
        return int(answer["ErrorCode"])

    def add(self, topic: str, *partitions: int, version: int = 3, **changes: Any) -> int:
        values = {
            "V3AndBelowTransactionalId": self.transactional_id,
            "V3AndBelowProducerId": self.producer_id,
            "V3AndBelowProducerEpoch": self.epoch,
            "V3AndBelowTopics": [{"Name": topic, "Partitions": list(partitions or (0,))}],
            **changes,
        }
        answer = self._ask("AddPartitionsToTxn", version, values)
        codes = {
            (topic["Name"], each["PartitionIndex"]): each["PartitionErrorCode"]
            for topic in answer["ResultsByTopicV3AndBelow"]
            for each in topic["ResultsByPartition"]
        }
        self._note("add", version, codes)
        return int(max(codes.values()))

    def add_batched(self, *transactions: dict[str, Any], version: int = 5) -> None:
        answer = self.side.raw("AddPartitionsToTxn", version, {"Transactions": list(transactions)})
        codes = {
            (result["TransactionalId"], topic["Name"], each["PartitionIndex"]): each["PartitionErrorCode"]
            for result in answer["ResultsByTransaction"]
            for topic in result["TopicResults"]
            for each in topic["ResultsByPartition"]
        }
        self._note("add batched", version, answer["ErrorCode"], codes)

    def transaction(self, topic: str, *partitions: int, **changes: Any) -> dict[str, Any]:
        """This producer's part of a batched AddPartitionsToTxn."""
        return {
            "TransactionalId": self.transactional_id,
            "ProducerId": self.producer_id,
            "ProducerEpoch": self.epoch,
            "VerifyOnly": False,
            "Topics": [{"Name": topic, "Partitions": list(partitions or (0,))}],
            **changes,
        }

    def add_offsets(self, group: str, version: int = 3, **changes: Any) -> int:
        values = {
            "TransactionalId": self.transactional_id,
            "ProducerId": self.producer_id,
            "ProducerEpoch": self.epoch,
            "GroupId": group,
            **changes,
        }
        answer = self._ask("AddOffsetsToTxn", version, values)
        self._note("add offsets", version, answer["ErrorCode"])
        return int(answer["ErrorCode"])

    def commit_offset(
        self, group: str, topic: str, offset: int, version: int = 3, partition: int = 0, **changes: Any
    ) -> int:
        partitions = [
            {
                "PartitionIndex": partition,
                "CommittedOffset": offset,
                "CommittedMetadata": "of the transaction",
            }
        ]
        values = {
            "TransactionalId": self.transactional_id,
            "GroupId": group,
            "ProducerId": self.producer_id,
            "ProducerEpoch": self.epoch,
            "Topics": [{"Name": topic, "Partitions": partitions}],
            **changes,
        }
        known = self.side.raw("TxnOffsetCommit", version, values)
        code = int(known["Topics"][0]["Partitions"][0]["ErrorCode"])
        self._note("commit offset", version, code)
        return code

    def produce(
        self,
        topic: str,
        value: bytes = b"value",
        *,
        version: int = 9,
        partition: int = 0,
        sequence: int | None = None,
        transactional_id: str | None = "own",
        attributes: int = TRANSACTIONAL,
        producer: tuple[int, int] | None = None,
    ) -> int:
        producer_id, epoch = producer or (self.producer_id, self.epoch)
        key = (topic, partition, epoch)
        base = self._sequences.get(key, 0) if sequence is None else sequence
        records = batch(
            (Record(value),),
            attributes=attributes,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=base,
        )
        given = self.transactional_id if transactional_id == "own" else transactional_id
        code, answer = self.produce_batches({partition: records}, topic, version, given)
        if code == 0 and sequence is None:
            self._sequences[key] = base + 1
        (only,) = answer.values()
        self._note("produce", version, code, only["BaseOffset"], bool(only.get("ErrorMessage")))
        return code

    def produce_batches(
        self, batches: dict[int, bytes], topic: str, version: int, transactional_id: str | None
    ) -> tuple[int, dict[int, Any]]:
        name = {"TopicId": self.topic_ids[topic]} if version >= 13 else {"Name": topic}
        data = [{"Index": index, "Records": records} for index, records in batches.items()]
        values = {
            "TransactionalId": transactional_id,
            "Acks": -1,
            "TimeoutMs": 10_000,
            "TopicData": [{**name, "PartitionData": data}],
        }
        answer = self.side.raw("Produce", version, values)
        partitions = {each["Index"]: each for each in answer["Responses"][0]["PartitionResponses"]}
        return max(each["ErrorCode"] for each in partitions.values()), partitions

    def end(self, *, commit: bool = True, version: int = 3, producer: tuple[int, int] | None = None) -> int:
        producer_id, epoch = producer or (self.producer_id, self.epoch)
        values = {
            "TransactionalId": self.transactional_id,
            "ProducerId": producer_id,
            "ProducerEpoch": epoch,
            "Committed": commit,
        }
        answer = self._ask("EndTxn", version, values)
        code = int(answer["ErrorCode"])
        given = (answer.get("ProducerId", -1), answer.get("ProducerEpoch", -1))
        if code == 0 and given[0] >= 0:
            self._become(*given)
        self._note("commit" if commit else "abort", version, code, self._name(given[0]), given[1])
        if code == 0:
            self.settle()
        return code

    # looking

    def settle(self) -> None:
        """Wait until the markers are written."""
        eventually(lambda: self.describe()["TransactionState"], lambda state: state not in PREPARED)

    def describe(self) -> dict[str, Any]:
        (state,) = self.side.raw("DescribeTransactions", 0, {"TransactionalIds": [self.transactional_id]})[
            "TransactionStates"
        ]
        return dict(state)

    def note_state(self) -> None:
        state = self.describe()
        topics = sorted((each["Topic"], sorted(each["Partitions"])) for each in state["Topics"])
        self._note(
            "state",
            state["ErrorCode"],
            state["TransactionState"],
            self._name(state["ProducerId"]),
            state["ProducerEpoch"],
            state["TransactionTimeoutMs"],
            state["TransactionStartTimeMs"] > 0,
            topics,
        )

    def note_log(self, topic: str, partition: int = 0) -> None:
        """What DescribeProducers, ListOffsets and a committed Fetch say of the partition."""
        asked = {"Topics": [{"Name": topic, "PartitionIndexes": [partition]}]}
        (described,) = self.side.raw("DescribeProducers", 0, asked)["Topics"][0]["Partitions"]
        producers = sorted(
            (
                self._name(each["ProducerId"]),
                each["ProducerEpoch"],
                each["LastSequence"],
                each["CoordinatorEpoch"],
                each["CurrentTxnStartOffset"],
            )
            for each in described["ActiveProducers"]
        )
        offsets = []
        for isolation in (0, 1):
            wanted = [{"PartitionIndex": partition, "Timestamp": -1}]
            values = {"IsolationLevel": isolation, "Topics": [{"Name": topic, "Partitions": wanted}]}
            (found,) = self.side.raw("ListOffsets", 4, values)["Topics"][0]["Partitions"]
            offsets.append(found["Offset"])
        self._note("log", producers, offsets, self._fetch(topic, partition))

    def _fetch(self, topic: str, partition: int) -> Any:
        wanted = {"Partition": partition, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20}
        values = {
            "MaxWaitMs": 0,
            "MinBytes": 0,
            "MaxBytes": 1 << 20,
            "IsolationLevel": 1,
            "Topics": [{"Topic": topic, "Partitions": [wanted]}],
        }
        (data,) = self.side.raw("Fetch", 11, values)["Responses"][0]["Partitions"]
        aborted = [
            (self._name(each["ProducerId"]), each["FirstOffset"])
            for each in data["AbortedTransactions"] or ()
        ]
        return data["ErrorCode"], data["HighWatermark"], data["LastStableOffset"], aborted

    def _ask(
        self, api_name: str, version: int, values: dict[str, Any], retry: frozenset[int] = frozenset()
    ) -> dict[str, Any]:
        return eventually(
            lambda: self.side.raw(api_name, version, values),
            lambda answer: answer.get("ErrorCode") not in retry,
        )

    def _become(self, producer_id: int, epoch: int) -> None:
        if producer_id not in self.producer_ids:
            self.producer_ids.append(producer_id)
        self.producer_id, self.epoch = producer_id, epoch

    def _name(self, producer_id: int) -> Any:
        if producer_id in self.producer_ids:
            return f"producer id {self.producer_ids.index(producer_id)}"
        return producer_id if producer_id in (-1, 0) else "another producer id"

    def _note(self, *what: Any) -> None:
        self.notes.append(what)


def find_coordinators(side: Side) -> None:
    """Kafka makes the topics of its coordinators when somebody looks for them."""
    for key_type in (0, 1):
        asked = {"KeyType": key_type, "CoordinatorKeys": ["any"]}
        eventually(
            lambda asked=asked: side.raw("FindCoordinator", 4, asked)["Coordinators"][0]["ErrorCode"],
            lambda code: code == 0,
        )
