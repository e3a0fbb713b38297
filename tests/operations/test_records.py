from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.network.budget import Budget
from kbroker.operations.reading import ReadFrom
from kbroker.operations.records import RecordsRead, read_partitions, read_records
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import Record, build_batch, compression
from kbroker.requests.resources import Resources
from kbroker.storage.memory import MemoryDirectory
from tests.handlers.conftest import Cluster
from tests.handlers.test_resources import NobodyMay
from tests.support.late_logs import LateDirectory

MB = 1 << 20


@pytest.fixture(params=[MemoryDirectory, LateDirectory], ids=["memory", "late"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    cluster = Cluster({"node.id": "1"}, request.param())
    cluster.create("t", 3)
    return cluster


@pytest.fixture
def resources(cluster: Cluster) -> Resources:
    return cluster.broker.resources(cluster.session())


def append(cluster: Cluster, *values: bytes, partition: int = 0, **batch: Any) -> None:
    append_bytes(cluster, build_batch([Record(1, None, value) for value in values], **batch), partition)


def append_bytes(cluster: Cluster, batch: bytes, partition: int = 0) -> None:
    log = cluster.broker.find_log("t", partition)
    log.append_as_leader(memoryview(bytearray(batch)), cluster.now_ms)
    cluster.deliver()


def end_transaction(cluster: Cluster, producer_id: int, *, commit: bool) -> None:
    log = cluster.broker.find_log("t", 0)
    log.append_control(producer_id, 0, commit=commit, coordinator_epoch=0, now_ms=cluster.now_ms)
    cluster.deliver()


def delivered(cluster: Cluster, result: Any) -> Any:
    for _ in range(20):
        if not isinstance(result, Pending) or result.done:
            break
        cluster.deliver()
    return result.result() if isinstance(result, Pending) else result


def read(cluster: Cluster, offset: int = 0, max_bytes: int = MB, **limits: Any) -> RecordsRead:
    resources = cluster.broker.resources(cluster.session())
    found: RecordsRead = delivered(
        cluster, read_records(resources, ReadFrom("t", 0, offset, max_bytes), **limits)
    )
    return found


def values(found: RecordsRead) -> list[bytes | None]:
    return [record.value for record in found.records]


def test_a_read_begins_in_the_middle_of_a_batch(cluster: Cluster) -> None:
    append(cluster, b"a", b"b", b"c")
    append(cluster, b"d")
    found = read(cluster, 1)
    assert [record.offset for record in found.records] == [1, 2, 3]
    assert values(found) == [b"b", b"c", b"d"]
    assert found[3:7] == (4, 4, 4, 0)


@pytest.mark.parametrize("codec", range(5), ids=compression.CODEC_NAMES)
def test_every_codec_is_read(cluster: Cluster, codec: int) -> None:
    append(cluster, *[b"value-%d" % n for n in range(500)], codec=codec)
    append(cluster, *[b"large" * 1000 + b"%d" % n for n in range(50)], codec=codec)
    assert len(read(cluster).records) == 550
    assert read(cluster, 549).records[0].value == b"large" * 1000 + b"49"


def test_no_more_come_than_asked_for_and_the_next_read_goes_on_there(cluster: Cluster) -> None:
    append(cluster, b"a", b"b", b"c")
    append(cluster, b"d", b"e")
    found = read(cluster, max_records=2)
    assert (values(found), found.next_offset) == ([b"a", b"b"], 2)
    found = read(cluster, 2, max_records=1)
    assert (values(found), found.next_offset) == ([b"c"], 3)
    found = read(cluster, 3, max_bytes=1)
    assert (values(found), found.next_offset) == ([b"d"], 4)


def test_the_first_record_comes_whatever_its_size(cluster: Cluster) -> None:
    append(cluster, b"x" * 1000, b"y", codec=compression.GZIP)
    found = read(cluster, max_bytes=10)
    assert (values(found), found.next_offset) == ([b"x" * 1000], 1)


def test_aborted_records_and_markers_are_left_out_of_a_committed_read(cluster: Cluster) -> None:
    append(cluster, b"a", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    append(cluster, b"b", transactional=True, producer_id=2, producer_epoch=0, base_sequence=0)
    end_transaction(cluster, 1, commit=False)
    end_transaction(cluster, 2, commit=True)
    append(cluster, b"c", transactional=True, producer_id=1, producer_epoch=0, base_sequence=1)
    end_transaction(cluster, 1, commit=True)
    append(cluster, b"d")
    assert values(read(cluster, committed=True)) == [b"b", b"c", b"d"]
    assert values(read(cluster)) == [b"a", b"b", b"c", b"d"]


def test_a_committed_read_ends_before_what_is_undecided(cluster: Cluster) -> None:
    append(cluster, b"a")
    append(cluster, b"b", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    append(cluster, b"c")
    found = read(cluster, committed=True)
    assert (values(found), found.next_offset) == ([b"a"], 1)
    assert (found.last_stable_offset, found.high_watermark) == (1, 3)


def test_what_is_left_out_is_passed_by(cluster: Cluster) -> None:
    append(cluster, b"a", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    end_transaction(cluster, 1, commit=False)
    found = read(cluster, committed=True)
    assert (values(found), found.next_offset) == ([], 2)


def test_a_marker_alone_does_not_end_a_wait(cluster: Cluster, resources: Resources) -> None:
    append(cluster, b"a", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    waiting = read_records(resources, ReadFrom("t", 0, 0, MB), max_wait_ms=1000, committed=True)
    cluster.deliver()
    assert isinstance(waiting, Pending)
    end_transaction(cluster, 1, commit=False)
    cluster.deliver()
    assert not waiting.done
    append(cluster, b"b")
    found = delivered(cluster, waiting)
    assert (values(found), found.next_offset) == ([b"b"], 3)


def test_a_wait_ends_without_records_when_its_time_is_over(cluster: Cluster, resources: Resources) -> None:
    waiting = read_records(resources, ReadFrom("t", 0, 0, MB), max_wait_ms=1000)
    cluster.deliver()
    assert isinstance(waiting, Pending)
    (over,) = cluster.scheduler.waiting
    cluster.now_ms += 1000
    over()
    found = delivered(cluster, waiting)
    assert (values(found), found.next_offset) == ([], 0)


def test_who_waits_no_more_leaves_nothing_behind(cluster: Cluster, resources: Resources) -> None:
    append(cluster, b"a")
    waiting = read_records(resources, ReadFrom("t", 0, 1, MB), max_wait_ms=1000)
    cluster.deliver()
    assert isinstance(waiting, Pending)
    assert cluster.scheduler.waiting
    waiting.abandon()
    cluster.deliver()
    assert not cluster.scheduler.waiting
    assert cluster.broker.budget.used == 0


def test_several_partitions_share_one_limit(cluster: Cluster, resources: Resources) -> None:
    for partition in range(3):
        append(cluster, b"a", b"b", partition=partition)
    wanted = [ReadFrom("t", partition, 0, MB) for partition in (2, 0, 1)]
    found = delivered(cluster, read_partitions(resources, wanted, max_records=3, max_bytes=MB))
    assert [(each.partition, len(each.records), each.next_offset) for each in found] == [
        (2, 2, 2),
        (0, 1, 1),
        (1, 0, 0),
    ]


def test_a_partition_that_cannot_be_read_leaves_the_others_alone(
    cluster: Cluster, resources: Resources
) -> None:
    append(cluster, b"a")
    wanted = [ReadFrom("t", 1, 5, MB), ReadFrom("t", 0, 0, MB), ReadFrom("none", 0, 0, MB)]
    found = delivered(cluster, read_partitions(resources, wanted, max_bytes=MB, max_wait_ms=1000))
    assert found[0].error.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert (found[0].log_start_offset, found[0].high_watermark) == (0, 0)
    assert values(found[1]) == [b"a"]
    assert found[2].error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_who_may_read_a_topic_gets_its_records(cluster: Cluster) -> None:
    resources = Resources(cluster.broker, cluster.session(), NobodyMay())
    with pytest.raises(ApiError) as refused:
        delivered(cluster, read_records(resources, ReadFrom("t", 0, 0, MB)))
    assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_bomb_takes_no_more_than_its_share_of_the_budget() -> None:
    cluster = Cluster({"node.id": "1", "message.max.bytes": str(8 * MB)})
    cluster.create("t", 1)
    cluster.broker.budget = budget = Budget(16 * MB)
    most = 0

    class Watching(Budget):
        def _reserve(self, size: int, granted: Any, whose: object | None) -> Any:
            nonlocal most
            result = super()._reserve(size, granted, whose)
            most = max(most, self.used)
            return result

    budget.__class__ = Watching
    append(cluster, *[bytes(MB)] * 40, codec=compression.ZSTD)
    offset = 0
    for _ in range(40):
        found = read(cluster, offset)
        assert values(found) == [bytes(MB)]
        offset = found.next_offset
    assert 8 * MB <= most <= 16 * MB
    assert budget.used == 0


def test_a_damaged_batch_is_told_once_what_is_before_it_was_read(cluster: Cluster) -> None:
    append(cluster, b"a")
    append(cluster, b"b" * 100, codec=compression.GZIP)
    log: Any = cluster.broker.find_log("t", 0)
    log = getattr(log, "inner", log)
    damaged = bytearray(log._segments[0].batches[1])
    damaged[70:80] = bytes(10)
    log._segments[0].batches[1] = bytes(damaged)
    assert values(read(cluster)) == [b"a"]
    with pytest.raises(ApiError) as told:
        read(cluster, 1)
    assert told.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_that_compaction_emptied_is_passed_by(cluster: Cluster) -> None:
    append(cluster, b"a", b"b")
    append(cluster, b"c")
    log: Any = cluster.broker.find_log("t", 0)
    log = getattr(log, "inner", log)
    log._segments[0].batches[0] = build_batch([Record(1, None, b"b")], base_offset=1)
    assert [record.offset for record in read(cluster).records] == [1, 2]


WRITES = st.lists(
    st.tuples(
        st.lists(st.binary(max_size=40), min_size=1, max_size=5),
        st.sampled_from(range(5)),
        st.sampled_from(["plain", "commit", "abort"]),
    ),
    max_size=12,
)


@given(WRITES, st.integers(1, 6), st.integers(1, 120))
def test_reading_bit_by_bit_gives_every_record_that_was_not_aborted_once(
    writes: list[tuple[list[bytes], int, str]], max_records: int, max_bytes: int
) -> None:
    cluster = Cluster({"node.id": "1"})
    cluster.create("t", 1)
    expected: list[tuple[int, bytes]] = []
    offset = sequence = 0
    for contents, codec, kind in writes:
        if kind == "plain":
            append(cluster, *contents, codec=codec)
        else:
            append(
                cluster,
                *contents,
                codec=codec,
                transactional=True,
                producer_id=7,
                producer_epoch=0,
                base_sequence=sequence,
            )
            sequence += len(contents)
            end_transaction(cluster, 7, commit=kind == "commit")
        if kind != "abort":
            expected += [(offset + index, content) for index, content in enumerate(contents)]
        offset = cluster.end_offset("t")
    got: list[tuple[int, bytes | None]] = []
    at = 0
    while at < offset:
        found = read(cluster, at, max_bytes, max_records=max_records, committed=True)
        assert len(found.records) <= max_records
        assert found.next_offset > at
        got += [(record.offset, record.value) for record in found.records]
        at = found.next_offset
    assert got == expected
    assert cluster.broker.budget.used == 0
