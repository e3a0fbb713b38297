"""Records published into logs in memory, and into logs that give offsets later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kbroker.operations.batching import Producer
from kbroker.operations.publishing import NewRecord, Outcome, Published, Refused, publish
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import Record, iter_batches, iter_records
from kbroker.protocol.records.compression import CODEC_NAMES, GZIP, ZSTD
from kbroker.storage.errors import DiskFull, OutOfOrderSequence, RecordTooLarge, UnexpectedOffset
from kbroker.storage.interface import Slice, TakesLong
from tests.handlers.conftest import NOW_MS, Cluster, on_late_logs_too
from tests.support.late_logs import LateDirectory


def begin(cluster: Cluster, topic: str, records: Sequence[NewRecord], **how: Any) -> Any:
    steps = publish(cluster.broker.own_resources, topic, records, now_ms=cluster.now_ms, **how)
    return cluster.broker.long_requests.run(steps)


def done(cluster: Cluster, topic: str, records: Sequence[NewRecord], **how: Any) -> list[Outcome]:
    outcome = begin(cluster, topic, records, **how)
    cluster.deliver()
    outcomes: list[Outcome] = outcome.result() if isinstance(outcome, Pending) else outcome
    return outcomes


def values(*texts: str, partition: int | None = None) -> list[NewRecord]:
    return [NewRecord(Record(-1, None, text.encode()), partition) for text in texts]


def stored(cluster: Cluster, topic: str, partition: int = 0) -> list[Record]:
    cluster.deliver()
    read = cluster.broker.find_log(topic, partition).read(0, 1 << 30)
    if isinstance(read, Pending):
        cluster.deliver()
        read = read.result()
    return [record for batch in batches(read) for record in iter_records(batch)]


def batches(read: Slice) -> list[bytes]:
    data = read.data
    return [data[position : position + header.size_bytes] for position, header in iter_batches(data)]


@on_late_logs_too
def test_records_get_the_next_offsets_and_the_time_of_their_publishing(cluster: Cluster) -> None:
    cluster.create("t")
    assert done(cluster, "t", values("a", "b")) == [Published(0, 0, NOW_MS), Published(0, 1, NOW_MS)]
    own_time = [NewRecord(Record(5, b"k", None, (("h", b"1"),)))]
    assert done(cluster, "t", own_time) == [Published(0, 2, 5)]
    assert [(each.timestamp, each.key, each.value, each.headers) for each in stored(cluster, "t")] == [
        (NOW_MS, None, b"a", ()),
        (NOW_MS, None, b"b", ()),
        (5, b"k", None, (("h", b"1"),)),
    ]


@on_late_logs_too
def test_a_topic_with_append_time_tells_when_it_was_appended(cluster: Cluster) -> None:
    cluster.create("t", message_timestamp_type="LogAppendTime")
    assert done(cluster, "t", [NewRecord(Record(5, None, b"a"))]) == [Published(0, 0, NOW_MS)]


def test_keys_choose_partitions_as_java_does_and_the_rest_go_together(cluster: Cluster) -> None:
    cluster.create("t", 4)
    keyed = [NewRecord(Record(1, key, b"v")) for key in (b"21", b"foobar", b"21")]
    assert [each.partition for each in done(cluster, "t", keyed)] == [0, 2, 0]
    assert {each.partition for each in done(cluster, "t", values("a", "b"))} == {0}
    assert {each.partition for each in done(cluster, "t", values("c", "d"))} == {1}
    assert [each.partition for each in done(cluster, "t", values("e", partition=3))] == [3]


def test_a_partition_that_does_not_exist_fails_alone(cluster: Cluster) -> None:
    cluster.create("t", 2)
    first, second = done(cluster, "t", [*values("a", partition=7), *values("b", partition=1)])
    assert isinstance(first, Refused)
    assert isinstance(first.error, ApiError)
    assert first.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert second == Published(1, 0, NOW_MS)


def test_a_topic_that_is_asked_for_is_made_if_that_is_allowed(cluster: Cluster) -> None:
    assert done(cluster, "new", values("a")) == [Published(0, 0, NOW_MS)]
    for name in ("a b", "", "__consumer_offsets"):
        with pytest.raises(ApiError):
            done(cluster, name, values("a"))


class TestWithoutAutoCreation:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"node.id": "1", "auto.create.topics.enable": "false"}

    def test_an_unknown_topic_is_refused(self, cluster: Cluster) -> None:
        with pytest.raises(ApiError) as refusal:
            done(cluster, "new", values("a"))
        assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@on_late_logs_too
def test_what_is_too_much_for_a_batch_is_split(cluster: Cluster) -> None:
    cluster.create("t", max_message_bytes="1000")
    outcomes = done(cluster, "t", values(*(f"{number:0100}" for number in range(50))))
    assert [each.offset for each in outcomes if isinstance(each, Published)] == list(range(50))
    assert [int(each.value or b"") for each in stored(cluster, "t")] == list(range(50))


def test_a_record_that_is_too_large_keeps_its_partition_from_being_written(cluster: Cluster) -> None:
    cluster.create("t", 2, max_message_bytes="1000")
    records = [*values("a", "x" * 2000, partition=0), *values("b", partition=1)]
    small, large, other = done(cluster, "t", records)
    assert isinstance(small, Refused)
    assert isinstance(large, Refused)
    assert isinstance(large.error, RecordTooLarge)
    assert other == Published(1, 0, NOW_MS)
    assert cluster.end_offset("t") == 0


@pytest.mark.parametrize("codec", range(len(CODEC_NAMES)), ids=CODEC_NAMES)
def test_batches_are_compressed_as_asked(cluster: Cluster, codec: int) -> None:
    cluster.create("t")
    done(cluster, "t", values(*(["hello"] * 20_000)), codec=codec)
    assert len(stored(cluster, "t")) == 20_000
    read = cluster.broker.find_log("t", 0).read(0, 1 << 30)
    assert isinstance(read, Slice)
    assert {header.codec for _, header in iter_batches(read.data)} == {codec}


def test_a_compressed_record_may_be_larger_than_a_batch(cluster: Cluster) -> None:
    cluster.create("t", max_message_bytes="1000")
    assert done(cluster, "t", values("x" * 5000), codec=ZSTD) == [Published(0, 0, NOW_MS)]


@on_late_logs_too
def test_of_writers_who_expect_an_offset_only_the_first_gets_it(cluster: Cluster) -> None:
    cluster.create("t")
    begun = [begin(cluster, "t", values(name), expected_offset=0) for name in ("first", "second")]
    cluster.deliver()
    (won,), (lost,) = (each.result() if isinstance(each, Pending) else each for each in begun)
    assert won == Published(0, 0, NOW_MS)
    assert isinstance(lost.error, UnexpectedOffset)
    assert lost.error.log_end_offset == 1
    assert [each.value for each in stored(cluster, "t")] == [b"first"]
    assert done(cluster, "t", values("third", "fourth"), expected_offset=1)[1] == Published(0, 2, NOW_MS)


def test_an_expectation_holds_while_a_batch_is_looked_into(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first look at it and the append others may write."""
    cluster.create("t", cleanup_policy="compact")
    log = cluster.broker.find_log("t", 0)
    real = log.append_as_leader

    def takes_long(*_: object) -> None:
        monkeypatch.setattr(log, "append_as_leader", real)
        cluster.produce("t", NOW_MS)  # somebody is faster, before the steps begin
        raise TakesLong

    monkeypatch.setattr(log, "append_as_leader", takes_long)
    (lost,) = done(cluster, "t", [NewRecord(Record(-1, b"k", b"v"))], codec=GZIP, expected_offset=0)
    assert isinstance(lost, Refused)
    assert isinstance(lost.error, UnexpectedOffset)
    assert cluster.end_offset("t") == 1


def test_an_expectation_is_about_one_partition_and_one_batch(cluster: Cluster) -> None:
    cluster.create("t", 2, max_message_bytes="1000")
    with pytest.raises(ApiError) as refusal:
        done(cluster, "t", [*values("a", partition=0), *values("b", partition=1)], expected_offset=0)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    (large, _) = done(cluster, "t", values("x" * 600, "x" * 600, partition=0), expected_offset=0)
    assert isinstance(large, Refused)
    assert isinstance(large.error, RecordTooLarge)
    assert cluster.end_offset("t") == 0


@on_late_logs_too
def test_what_an_origin_repeats_is_not_written_again(cluster: Cluster) -> None:
    cluster.create("t")
    first = done(cluster, "t", values("a", "b"), origin=Producer(7, 0, 0))
    again = done(cluster, "t", values("a", "b"), origin=Producer(7, 0, 0))
    assert [each.offset for each in again] == [each.offset for each in first] == [0, 1]  # type: ignore[union-attr]
    assert done(cluster, "t", values("c"), origin=Producer(7, 0, 2)) == [Published(0, 2, NOW_MS)]
    (gap,) = done(cluster, "t", values("d"), origin=Producer(7, 0, 9))
    assert isinstance(gap, Refused)
    assert isinstance(gap.error, OutOfOrderSequence)
    assert [each.value for each in stored(cluster, "t")] == [b"a", b"b", b"c"]


def test_a_repetition_is_found_before_its_expectation_fails(cluster: Cluster) -> None:
    cluster.create("t")
    for _ in range(2):
        (outcome,) = done(cluster, "t", values("a"), origin=Producer(7, 0, 0), expected_offset=0)
        assert outcome == Published(0, 0, NOW_MS)
    assert cluster.end_offset("t") == 1


@pytest.mark.parametrize("logs", [LateDirectory], ids=["late"], indirect=True)
def test_acks_0_does_not_wait(cluster: Cluster) -> None:
    cluster.create("t")
    assert begin(cluster, "t", values("a"), acks=0) == [Published(0, -1, NOW_MS)]
    assert isinstance(begin(cluster, "t", values("b"), acks=1), Pending)
    assert [each.value for each in stored(cluster, "t")] == [b"a", b"b"]
    with pytest.raises(ApiError) as refusal:
        begin(cluster, "t", values("c"), acks=2)
    assert refusal.value.code is ErrorCode.INVALID_REQUIRED_ACKS


def test_a_full_disk_is_told_for_the_records_it_keeps_out(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create("t", 2)

    def no_room(*_: object) -> None:
        raise DiskFull("no room")

    monkeypatch.setattr(cluster.broker.find_log("t", 0), "append_as_leader", no_room)
    kept_out, other = done(cluster, "t", [*values("a", partition=0), *values("b", partition=1)])
    assert isinstance(kept_out, Refused)
    assert isinstance(kept_out.error, DiskFull)
    assert other == Published(1, 0, NOW_MS)


def test_nothing_stays_in_the_budget(cluster: Cluster) -> None:
    cluster.create("t")
    done(cluster, "t", values(*(["x" * 1000] * 3000)))
    assert cluster.broker.budget.used == 0
