"""Logs that give offsets, refusals and records later than they are asked for them."""

from __future__ import annotations

from typing import Any

import pytest

from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
from kbroker.pending import Pending
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kbroker.protocol.records import Record, build_batch, iter_records
from kbroker.requests.request import parse
from kbroker.storage.errors import LogFenced
from kbroker.storage.memory import MemoryDirectory
from tests.support.late_logs import LateDirectory, LateLog

from .conftest import NOW_MS, Cluster

SETTINGS = {"node.id": "1"}


@pytest.fixture
def logs() -> LateDirectory:
    return LateDirectory()


@pytest.fixture(autouse=True)
def log(cluster: Cluster) -> LateLog:
    cluster.create("t")
    log = cluster.broker.find_log("t", 0)
    assert isinstance(log, LateLog)
    return log


def produce(*values: bytes, topic: str = "t", transactional_id: str | None = None, **batch: Any) -> Any:
    records = build_batch([Record(NOW_MS, b"k", value) for value in values], **batch)
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, memoryview(bytearray(records)))])
    return ProduceRequest(transactional_id, acks=-1, timeout_ms=1000, topic_data=[data])


def fetch(offset: int, *, max_wait_ms: int = 0, topic: str = "t") -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic, partitions=[asked])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, topics=topics)


def result(answer: Any) -> Any:
    """What an answer says of its one partition."""
    answer = answer.result() if isinstance(answer, Pending) else answer
    (topic,) = answer.responses
    (partition,) = topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions
    return partition


def values(answer: Any) -> list[bytes | None]:
    records = result(answer).records
    return [record.value for record in iter_records(records)] if records else []


# producing


def test_offsets_that_come_later_are_in_the_answer_in_the_order_of_the_requests(
    cluster: Cluster, logs: LateDirectory
) -> None:
    answers = [cluster.begin(produce(*values), 9) for values in ([b"a", b"b"], [b"c"], [b"d"])]
    assert not any(answer.done for answer in answers)
    logs.deliver()
    assert [answer.done for answer in answers] == [True, False, False]
    logs.deliver_all()
    assert [result(answer).base_offset for answer in answers] == [0, 2, 3]
    assert {result(answer).error_code for answer in answers} == {ErrorCode.NONE}


def test_the_next_request_may_begin_before_the_offsets_are_known(cluster: Cluster) -> None:
    header = RequestHeader(0, 9, 7, "test")
    frame = encode_bytes(header, request_header_version(0, 9)) + encode_bytes(produce(b"a"), 9)
    request = parse(memoryview(bytearray(frame)), cluster.session(), cluster.now_ms)
    answer = request.run(cluster.broker)
    assert isinstance(answer, Pending)
    assert not answer.done
    assert request.may_overlap(answer)


def test_the_records_of_a_request_are_not_needed_after_it(cluster: Cluster, logs: LateDirectory) -> None:
    request = produce(b"kept")
    records = request.topic_data[0].partition_data[0].records
    log = cluster.broker.find_log("t", 0)
    log.append_as_leader(records, NOW_MS)
    records[:] = bytes(len(records))
    logs.deliver_all()
    assert values(cluster.send(fetch(0), 11)) == [b"kept"]


@pytest.mark.parametrize("timestamps", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize(
    "second",
    [
        {"base_sequence": 1},
        {"base_sequence": 0},  # a duplicate
        {"base_sequence": 7},
        {"base_sequence": 0, "producer_epoch": 0},
        {"base_sequence": 5, "producer_epoch": 2},
    ],
    ids=["next", "duplicate", "gap", "old epoch", "new epoch"],
)
def test_the_answer_is_that_of_a_log_that_judges_at_once(
    cluster: Cluster, timestamps: str, second: dict[str, int]
) -> None:
    producer = {"producer_id": 7, "producer_epoch": 1}
    at_once = Cluster(SETTINGS, MemoryDirectory())
    answers = []
    for each in (at_once, cluster):
        each.create("idempotent", **{"message.timestamp.type": timestamps})
        batches = [{**producer, **sequence} for sequence in ({"base_sequence": 0}, second)]
        answers += [each.send(produce(b"x", topic="idempotent", **batch), 9) for batch in batches]
    at_once.catalog.close()
    assert result(answers[2]) == result(answers[0])
    assert result(answers[3]) == result(answers[1])


def test_what_a_batch_itself_is_refused_for_needs_no_log(cluster: Cluster, logs: LateDirectory) -> None:
    cluster.create("compacted", **{"cleanup.policy": "compact"})
    keyless = build_batch([Record(NOW_MS, None, b"x")])
    data = TopicProduceData("compacted", partition_data=[PartitionProduceData(0, keyless)])
    answer = cluster.begin(ProduceRequest(None, acks=-1, timeout_ms=1000, topic_data=[data]), 9)
    assert result(answer).error_code == ErrorCode.INVALID_RECORD


def test_a_batch_that_takes_long_to_look_into_gets_its_offset(cluster: Cluster) -> None:
    cluster.create("checked", **{"kbroker.validate.records": "true"})
    answer = cluster.send(produce(*[b"x"] * 3000, topic="checked"), 9)
    assert (result(answer).error_code, result(answer).base_offset) == (ErrorCode.NONE, 0)


# reading


def test_reads_are_prepared_before_the_first_begins(cluster: Cluster, logs: LateDirectory) -> None:
    cluster.produce("t", NOW_MS)
    answer = cluster.begin(fetch(0), 11)
    assert not answer.done
    logs.deliver_all()
    assert values(answer) == [b"value"]
    assert logs.unprepared_reads == 0


def test_an_offset_that_others_wrote_is_not_out_of_range(cluster: Cluster, log: LateLog) -> None:
    log.inner.append_as_leader(memoryview(bytearray(build_batch([Record(NOW_MS, None, b"theirs")]))), NOW_MS)
    assert log.log_end_offset == 0, "this broker has not heard of it"
    assert values(cluster.send(fetch(0), 11)) == [b"theirs"]
    assert result(cluster.send(fetch(1), 11)).error_code == ErrorCode.NONE
    assert result(cluster.send(fetch(2), 11)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_list_offsets_tells_what_others_wrote(cluster: Cluster, log: LateLog) -> None:
    log.inner.append_as_leader(memoryview(bytearray(build_batch([Record(NOW_MS, None, b"theirs")]))), NOW_MS)
    wanted = ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=-1)])
    answer = cluster.send(ListOffsetsRequest(-1, 0, [wanted]), 4)
    assert answer.topics[0].partitions[0].offset == 1


def test_a_partition_that_cannot_be_refreshed_is_told_so(
    cluster: Cluster, log: LateLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create("other")

    def refresh() -> Pending[None]:
        failed: Pending[None] = Pending()
        failed.fail(LogFenced("nobody answers"))
        return failed

    monkeypatch.setattr(log, "refresh", refresh)
    wanted = [ListOffsetsTopic(name, [ListOffsetsPartition(0, timestamp=-1)]) for name in ("t", "other")]
    answer = cluster.send(ListOffsetsRequest(-1, 0, wanted), 4)
    codes = [topic.partitions[0].error_code for topic in answer.topics]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_a_waiting_fetch_gets_what_is_given_its_offset(cluster: Cluster, logs: LateDirectory) -> None:
    answer = cluster.send(fetch(0, max_wait_ms=1000), 11)
    assert not answer.done
    cluster.begin(produce(b"late"), 9)
    assert not answer.done
    logs.deliver_all()
    assert values(answer) == [b"late"]


def test_a_fetch_whose_time_is_over_while_reads_are_prepared_is_answered_once(
    cluster: Cluster, logs: LateDirectory
) -> None:
    answer = cluster.send(fetch(0, max_wait_ms=1000), 11)
    cluster.begin(produce(b"late"), 9)
    logs.deliver()  # the offset, for which the fetch wakes up
    (deadline,) = cluster.scheduler.waiting
    deadline()
    logs.deliver_all()
    assert values(answer) == [b"late"]
    assert logs.unprepared_reads == 0


def test_a_fetch_that_nobody_waits_for_gives_its_budget_back(cluster: Cluster, logs: LateDirectory) -> None:
    available = cluster.broker.budget.available
    answer = cluster.begin(fetch(0), 11)
    assert cluster.broker.budget.available < available
    answer.abandon()
    logs.deliver_all()
    assert cluster.broker.budget.available == available


# transactions


def test_logs_that_judge_transactions_are_asked_without_the_coordinator(
    cluster: Cluster, logs: LateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("the coordinator was asked")

    for question in ("add_partitions", "verify_partitions", "is_being_ended"):
        monkeypatch.setattr(TransactionCoordinator, question, asked)
    logs.judges_transactions = True
    batch = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    answer = cluster.begin(produce(b"x", transactional_id="id", **batch), 12)
    logs.deliver_all()
    assert (result(answer).error_code, result(answer).base_offset) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize(("epoch", "code"), [(1, ErrorCode.NONE), (0, ErrorCode.INVALID_PRODUCER_EPOCH)])
def test_a_marker_is_answered_when_it_is_in_the_log(
    cluster: Cluster, logs: LateDirectory, epoch: int, code: ErrorCode
) -> None:
    cluster.produce("t", NOW_MS, producer_id=7, producer_epoch=1, base_sequence=0, transactional=True)
    marker = WritableTxnMarker(7, epoch, True, [WritableTxnMarkerTopic("t", [0])], 0)
    answer = cluster.begin(WriteTxnMarkersRequest([marker]), 1)
    assert not answer.done
    logs.deliver_all()
    assert answer.result().markers[0].topics[0].partitions[0].error_code == code
