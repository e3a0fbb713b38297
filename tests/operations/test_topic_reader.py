"""Readers of topics: what a read returns and what it waits for, whatever happens to the topic meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kbroker.operations.offsets import EARLIEST, LATEST
from kbroker.operations.topic_reader import (
    MOST_PARTITIONS,
    Gap,
    TooManyPartitions,
    TopicGone,
    TopicRead,
    TopicReader,
    open_reader,
    positions_at,
)
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError
from kbroker.protocol.records import Record, build_batch
from kbroker.requests.resources import Resources
from kbroker.storage.errors import Shortage
from kbroker.storage.memory import MemoryDirectory
from tests.handlers.conftest import Cluster
from tests.support.late_logs import LateDirectory

MB = 1 << 20


@pytest.fixture(params=[MemoryDirectory, LateDirectory], ids=["memory", "late"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    cluster = Cluster({"node.id": "1"}, request.param())
    cluster.create("t", 3)
    return cluster


def delivered(cluster: Cluster, result: Any) -> Any:
    for _ in range(20):
        if not isinstance(result, Pending) or result.done:
            break
        cluster.deliver()
    return result.result() if isinstance(result, Pending) else result


def run(cluster: Cluster, steps: Any) -> Any:
    return delivered(cluster, cluster.broker.long_requests.run(steps))


def resources_of(cluster: Cluster) -> Resources:
    return cluster.broker.resources(cluster.session())


def opened(
    cluster: Cluster,
    partitions: list[int] | None = None,
    positions: Mapping[int, int] | None = None,
    *,
    topic: str = "t",
    committed: bool = False,
) -> TopicReader:
    found = cluster.broker.topics.get(topic)
    assert found is not None
    reader: TopicReader = run(
        cluster,
        open_reader(resources_of(cluster), found, partitions, positions or {}, committed=committed),
    )
    return reader


def append(cluster: Cluster, *values: bytes, partition: int = 0, topic: str = "t", **batch: Any) -> None:
    log = cluster.broker.find_log(topic, partition)
    records = build_batch([Record(1, None, value) for value in values], **batch)
    log.append_as_leader(memoryview(bytearray(records)), cluster.now_ms)
    cluster.deliver()


def found(read: TopicRead) -> list[tuple[int, bytes | None]]:
    return [(part.partition, record.value) for part in read.parts for record in part.records]


def read(cluster: Cluster, reader: TopicReader, max_records: int = 100) -> TopicRead:
    taken: TopicRead = delivered(cluster, reader.read(max_records, MB))
    return taken


def waiting(cluster: Cluster, reader: TopicReader) -> Pending[TopicRead]:
    result = reader.read(100, MB)
    cluster.deliver()
    assert isinstance(result, Pending)
    assert not result.done
    return result


def test_all_partitions_are_read_and_positions_move_past_what_was(cluster: Cluster) -> None:
    append(cluster, b"a", b"b")
    append(cluster, b"c", partition=2)
    reader = opened(cluster)
    assert sorted(found(read(cluster, reader))) == [(0, b"a"), (0, b"b"), (2, b"c")]
    assert reader.positions == {0: 2, 1: 0, 2: 1}


def test_a_read_goes_on_where_the_one_before_had_no_room(cluster: Cluster) -> None:
    append(cluster, *(b"%d" % n for n in range(10)))
    reader = opened(cluster)
    values = []
    while len(values) < 10:
        values += [value for _, value in found(read(cluster, reader, max_records=3))]
    assert values == [b"%d" % n for n in range(10)]


def test_a_partition_with_much_to_read_does_not_keep_the_others_waiting(cluster: Cluster) -> None:
    append(cluster, *(b"%d" % n for n in range(10)))
    append(cluster, b"x", partition=1)
    append(cluster, b"y", partition=2)
    reader = opened(cluster)
    first_three = [found(read(cluster, reader, max_records=1)) for _ in range(3)]
    assert {partition for one in first_three for partition, _ in one} == {0, 1, 2}


def test_a_read_waits_for_a_record_in_any_partition(cluster: Cluster) -> None:
    reader = opened(cluster)
    for partition in (2, 0, 1):
        result = waiting(cluster, reader)
        append(cluster, b"v", partition=partition)
        assert found(delivered(cluster, result)) == [(partition, b"v")]


def test_what_waits_asks_for_no_call_at_a_later_time(cluster: Cluster) -> None:
    reader = opened(cluster)
    before = len(cluster.scheduler.waiting)
    waiting(cluster, reader)
    assert len(cluster.scheduler.waiting) == before


def test_what_comes_while_nobody_reads_is_read_next(cluster: Cluster) -> None:
    append(cluster, b"a")
    reader = opened(cluster)
    assert found(read(cluster, reader)) == [(0, b"a")]
    append(cluster, b"b")
    assert found(read(cluster, reader)) == [(0, b"b")]


def test_partitions_that_come_later_are_read_from_their_first_record(cluster: Cluster) -> None:
    append(cluster, b"a")
    reader = opened(cluster, positions={0: 1, 1: 0, 2: 0})
    result = waiting(cluster, reader)
    topic = cluster.broker.topics.get("t")
    assert topic is not None
    delivered(cluster, cluster.broker.topics.add_partitions(topic, 5))
    assert not result.done
    append(cluster, b"new", partition=4)
    assert found(delivered(cluster, result)) == [(4, b"new")]
    assert reader.positions == {0: 1, 1: 0, 2: 0, 3: 0, 4: 1}


def test_who_reads_some_partitions_reads_no_others(cluster: Cluster) -> None:
    reader = opened(cluster, [1])
    result = waiting(cluster, reader)
    append(cluster, b"a", partition=0)
    topic = cluster.broker.topics.get("t")
    assert topic is not None
    delivered(cluster, cluster.broker.topics.add_partitions(topic, 4))
    assert not result.done
    append(cluster, b"b", partition=1)
    assert found(delivered(cluster, result)) == [(1, b"b")]


def test_a_deleted_topic_ends_the_read_also_if_another_one_has_its_name(cluster: Cluster) -> None:
    reader = opened(cluster)
    result = waiting(cluster, reader)
    topic = cluster.broker.topics.get("t")
    assert topic is not None
    delivered(cluster, cluster.broker.topics.delete(topic))
    cluster.create("t", 3)
    with pytest.raises(TopicGone, match="The topic t was deleted"):
        delivered(cluster, result)
    with pytest.raises(TopicGone):
        read(cluster, reader)


def test_what_was_deleted_before_it_was_read_is_a_gap(cluster: Cluster) -> None:
    append(cluster, b"a")
    append(cluster, b"b")
    append(cluster, b"c")
    reader = opened(cluster, [0])
    delivered(cluster, cluster.broker.find_log("t", 0).delete_records_before(2))
    told = read(cluster, reader)
    assert told.gaps == [Gap(0, 0, 2)]
    assert found(told) == []
    assert found(read(cluster, reader)) == [(0, b"c")]


def test_a_position_behind_the_end_is_a_gap_and_what_comes_next_is_read(cluster: Cluster) -> None:
    append(cluster, b"a")
    reader = opened(cluster, [0], {0: 7})
    assert read(cluster, reader).gaps == [Gap(0, 7, 1)]
    append(cluster, b"b")
    assert found(read(cluster, reader)) == [(0, b"b")]


def test_committed_reads_leave_out_what_is_aborted_and_wait_for_what_is_open(cluster: Cluster) -> None:
    log = cluster.broker.find_log("t", 0)

    def end(*, commit: bool) -> None:
        log.append_control(5, 0, commit=commit, coordinator_epoch=0, now_ms=cluster.now_ms)
        cluster.deliver()

    batch = {"producer_id": 5, "producer_epoch": 0, "transactional": True}
    reader = opened(cluster, [0], committed=True)
    append(cluster, b"no", base_sequence=0, **batch)
    waiting(cluster, reader).abandon()
    end(commit=False)
    nothing = read(cluster, reader)
    assert found(nothing) == []
    assert reader.positions == {0: 2}
    append(cluster, b"yes", base_sequence=1, **batch)
    waiting(cluster, reader).abandon()
    end(commit=True)
    assert found(read(cluster, reader)) == [(0, b"yes")]


def test_a_seek_lets_a_waiting_read_go_on_there(cluster: Cluster) -> None:
    append(cluster, b"a", b"b")
    reader = opened(cluster)
    read(cluster, reader)
    result = waiting(cluster, reader)
    reader.seek(0, 1)
    assert found(delivered(cluster, result)) == [(0, b"b")]
    with pytest.raises(ApiError, match="Partition 9"):
        reader.seek(9, 0)


def test_what_is_put_back_is_read_again(cluster: Cluster) -> None:
    append(cluster, b"a", b"b")
    append(cluster, b"c", partition=1)
    reader = opened(cluster, positions={0: 1})
    taken = read(cluster, reader)
    reader.put_back(taken)
    assert reader.positions == {0: 1, 1: 0, 2: 0}
    assert found(read(cluster, reader)) == found(taken)


def test_a_read_that_nobody_waits_for_any_more_takes_nothing(cluster: Cluster) -> None:
    reader = opened(cluster)
    waiting(cluster, reader).abandon()
    append(cluster, b"a")
    assert found(read(cluster, reader)) == [(0, b"a")]


def test_what_may_get_better_is_tried_again_later(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    append(cluster, b"a")
    append(cluster, b"b", partition=1)
    log = cluster.broker.find_log("t", 0)
    reader = opened(cluster)

    def fails(*_: Any, **__: Any) -> Any:
        raise Shortage("no descriptors are left")

    with monkeypatch.context() as patch:
        patch.setattr(log, "read", fails)
        assert found(read(cluster, reader)) == [(1, b"b")]
        result = waiting(cluster, reader)
    for callback in list(cluster.scheduler.waiting):
        callback()
    assert found(delivered(cluster, result)) == [(0, b"a")]


def test_a_reader_that_is_closed_leaves_nothing_behind(cluster: Cluster) -> None:
    budget = cluster.broker.budget
    before = budget.used
    reader = opened(cluster)
    assert budget.used > before
    waiting(cluster, reader).abandon()
    reader.close()
    assert budget.used == before
    append(cluster, b"a")


def test_a_topic_with_very_many_partitions_is_not_read_whole(cluster: Cluster) -> None:
    cluster.create("wide", MOST_PARTITIONS + 1)
    before = cluster.broker.budget.used
    with pytest.raises(TooManyPartitions, match="name some of them"):
        opened(cluster, topic="wide")
    assert cluster.broker.budget.used == before
    reader = opened(cluster, [MOST_PARTITIONS], topic="wide")
    append(cluster, b"a", partition=MOST_PARTITIONS, topic="wide")
    assert found(read(cluster, reader)) == [(MOST_PARTITIONS, b"a")]


def test_more_partitions_than_one_read_looks_at_are_all_read(cluster: Cluster) -> None:
    cluster.create("wide", 120)
    for partition in range(120):
        append(cluster, b"a", partition=partition, topic="wide")
    reader = opened(cluster, topic="wide")
    seen: list[int] = []
    while len(seen) < 120:
        seen += [partition for partition, _ in found(read(cluster, reader))]
    assert sorted(seen) == list(range(120))


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(EARLIEST, {0: 0, 1: 0}), (LATEST, {0: 2, 1: 0}), (15, {0: 1, 1: 0}), (99, {0: 2, 1: 0})],
)
def test_a_reader_begins_at_a_time(cluster: Cluster, timestamp: int, expected: dict[int, int]) -> None:
    cluster.produce("t", 10)
    cluster.produce("t", 20)
    topic = cluster.broker.topics.get("t")
    assert topic is not None
    steps = positions_at(resources_of(cluster), topic, [0, 1], timestamp, committed=False)
    assert run(cluster, steps) == expected
