"""What compaction keeps and removes, on logs of both kinds; the rules are Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kbroker.protocol.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from kbroker.storage.compaction.jobs import CompactionStats
from kbroker.storage.config import LogConfig

from .compacting import SETTINGS, Compacting, compacted
from .support import NOW

Make = Callable[..., Compacting]


@pytest.fixture(params=["files", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    opened: list[Compacting] = []

    def make(config: LogConfig | None = None, **options: object) -> Compacting:
        path = tmp_path / str(len(opened)) if request.param == "files" else None
        opened.append(Compacting(path, config or compacted(), **options))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for one in opened:
        one.directory.close()


def test_the_latest_value_of_every_key_stays_at_its_offset(make: Make) -> None:
    topic = make()
    topic.append(("a", "1"), ("b", "1"), ("a", "2"))
    topic.append(("c", "1"), ("b", "2"))
    topic.roll()
    end = topic.log.log_end_offset
    topic.compact()
    assert topic.contents() == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2")]
    assert topic.log.log_end_offset == end
    assert topic.log.log_start_offset == 0


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_batches_of_any_codec_are_compacted_and_keep_it(make: Make, codec: int) -> None:
    topic = make(compacted(segment_bytes=2000))
    topic.append(*((f"k{n % 5}", f"value {n}") for n in range(20)), codec=codec)
    topic.roll()
    topic.compact()
    assert topic.contents() == [(15 + n, f"k{n}", f"value {15 + n}") for n in range(5)]
    header = topic.headers()[0]
    assert (header.codec, header.base_offset, header.last_offset, header.record_count) == (codec, 0, 19, 5)


def test_the_active_segment_is_never_touched(make: Make) -> None:
    topic = make(compacted(segment_bytes=100_000))
    for number in range(10):
        topic.append(("a", str(number)))
    topic.compact()
    assert len(topic.contents()) == 10
    assert topic.runs == 0


def test_values_in_the_active_segment_do_not_remove_older_ones(make: Make) -> None:
    topic = make()
    topic.append(("a", "old"))
    topic.roll()
    topic.append(("a", "new"))
    topic.compact()
    assert topic.contents() == [(0, "a", "old"), (2, "a", "new")]


def test_records_keep_timestamps_and_headers_of_batches_that_lose_some(make: Make) -> None:
    topic = make()
    topic.append(("a", "1"), ("b", "1"), timestamp=NOW + 5)
    topic.append(("a", "2"), timestamp=NOW + 9)
    topic.roll()
    topic.compact()
    assert [header.max_timestamp for header in topic.headers()[:2]] == [NOW + 5, NOW + 9]
    found = topic.log.offset_for_timestamp(NOW + 6)
    assert found is not None
    assert found.offset == 2


def test_a_record_without_key_from_before_is_dropped(make: Make) -> None:
    topic = make()
    topic.append((None, "from before"), ("a", "1"))
    topic.roll()
    topic.compact()
    assert topic.contents() == [(1, "a", "1")]


def test_the_last_batch_of_the_range_stays_though_it_has_no_records(make: Make) -> None:
    topic = make()
    topic.append(("a", "1"))
    topic.append((None, "x"), (None, "y"))
    topic.roll()
    topic.compact()
    header = topic.headers()[1]
    assert (header.base_offset, header.last_offset, header.record_count) == (1, 2, 0)
    topic.append(("b", "1"))
    topic.roll()
    topic.compact()
    assert [header.base_offset for header in topic.headers()] == [0, 3, 4, 5]


# tombstones


def test_a_tombstone_removes_what_is_before_it_and_stays_for_delete_retention(make: Make) -> None:
    topic = make(compacted(delete_retention_ms=5000))
    topic.append(("a", "1"), ("b", "1"))
    topic.append(("a", None))
    topic.roll()
    topic.compact()
    assert topic.contents() == [(1, "b", "1"), (2, "a", None)]
    tombstone = next(header for header in topic.headers() if header.base_offset == 2)
    horizon = tombstone.delete_horizon_ms
    assert horizon is not None
    assert topic.now_ms - 2000 + 5000 <= horizon <= topic.now_ms + 5000

    topic.append(("c", "1"))
    topic.roll()
    topic.compact()  # before the horizon
    assert (2, "a", None) in topic.contents()
    assert horizon in [header.delete_horizon_ms for header in topic.headers()]

    topic.now_ms = horizon
    topic.append(("c", "2"))
    topic.roll()
    topic.compact()
    assert [entry for entry in topic.contents() if entry[1] == "a"] == []


def test_records_beside_a_tombstone_keep_their_timestamps_when_the_horizon_is_set(make: Make) -> None:
    topic = make()
    topic.append(("a", "1"), ("b", None), timestamp=NOW - 50)
    topic.roll()
    topic.compact()
    assert topic.headers()[0].delete_horizon_ms is not None
    assert topic.headers()[0].max_timestamp == NOW - 50
    assert topic.contents() == [(0, "a", "1"), (1, "b", None)]
    found = topic.log.offset_for_timestamp(NOW - 50)
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW - 50, 0)


# when


def test_a_log_below_its_dirty_ratio_waits(make: Make) -> None:
    topic = make(compacted(min_cleanable_dirty_ratio=0.5))
    for number in range(10):
        topic.append((f"k{number}", "x" * 100))
    topic.roll()
    topic.compact()
    assert topic.runs == 1
    topic.append(("k0", "y"))
    topic.roll()
    topic.compact()
    assert topic.runs == 1
    for number in range(12):
        topic.append((f"k{number}", "z" * 100))
    topic.roll()
    topic.compact()
    assert topic.runs == 2


def test_segments_younger_than_the_min_compaction_lag_stay(make: Make) -> None:
    topic = make(compacted(min_compaction_lag_ms=10_000))
    topic.append(("a", "1"))
    topic.append(("a", "2"))
    topic.roll()
    topic.now_ms += 8000
    topic.append(("a", "3"))
    topic.append(("a", "4"))
    topic.roll()
    topic.compact(3000)
    assert topic.contents() == [(1, "a", "2"), (3, "a", "3"), (4, "a", "4")]


def test_a_log_beyond_the_max_compaction_lag_is_due_whatever_its_ratio(make: Make) -> None:
    topic = make(compacted(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=10_000))
    topic.append(("a", "1"))
    topic.append(("a", "2"))
    topic.roll()
    topic.compact(9000)
    assert topic.runs == 0
    topic.compact(2000)
    assert topic.contents() == [(1, "a", "2")]


def test_a_segment_of_a_compacted_topic_ends_after_the_max_compaction_lag(make: Make) -> None:
    topic = make(compacted(max_compaction_lag_ms=1000, segment_bytes=100_000))
    topic.append(("a", "1"))
    topic.now_ms += 1001
    topic.append(("a", "2"))
    assert topic.segments() == [0, 1]


def test_only_compacted_topics_are_compacted_and_only_if_the_cleaner_is_on(make: Make) -> None:
    for topic in (
        make(compacted(cleanup_policy=frozenset(("delete",)))),
        make(settings=replace(SETTINGS, cleaner_enable=False)),
    ):
        topic.append(("a", "1"), ("a", "2"))
        topic.roll()
        topic.compact()
        assert topic.runs == 0


def test_the_cleaner_is_reconfigured_while_it_runs(make: Make) -> None:
    topic = make(settings=replace(SETTINGS, cleaner_backoff_ms=10**9))
    topic.append(("a", "1"), ("a", "2"))
    topic.roll()
    topic.compact()
    assert topic.runs == 0
    topic.directory.reconfigure(SETTINGS)
    topic.compact(10**9 if topic.path is None else 1000)
    assert topic.runs == 1


def test_a_topic_may_be_compacted_and_deleted(make: Make) -> None:
    config = compacted(cleanup_policy=frozenset(("compact", "delete")), retention_ms=10_000)
    settings = replace(SETTINGS, retention_check_interval_ms=20_000, retention_initial_delay_ms=20_000)
    topic = make(config, settings=settings)
    topic.append(("a", "1"), ("a", "2"), ("b", "1"))
    topic.roll()
    topic.compact()
    assert topic.contents() == [(1, "a", "2"), (2, "b", "1")]
    topic.now_ms = NOW + 20_000
    topic.append(("c", "1"))
    topic.roll()
    topic.directory.tick(topic.now_ms)
    assert topic.log.log_start_offset == 3
    assert [key for _, key, _ in topic.contents()] == ["c"]


# memory


def test_a_full_map_compacts_as_far_as_it_goes_and_then_the_rest(make: Make) -> None:
    settings = replace(SETTINGS, cleaner_dedupe_buffer_bytes=24 * 11)
    topic = make(settings=settings)
    for round_ in range(3):
        for number in range(30):
            topic.append((f"k{number}", f"{round_}"))
    topic.roll()
    topic.compact()
    assert topic.runs > 5
    assert topic.contents() == [(60 + number, f"k{number}", "2") for number in range(30)]


# producers and transactions


def test_the_last_batch_of_a_producer_stays_for_its_sequence_number(make: Make) -> None:
    topic = make()
    for sequence in range(3):
        topic.append(("a", str(sequence)), producer_id=7, producer_epoch=0, base_sequence=sequence)
    topic.append(("a", "last"))
    topic.append(("b", "1"))
    topic.roll()
    topic.compact()
    assert topic.contents() == [(3, "a", "last"), (4, "b", "1")]
    assert [
        (header.base_offset, header.base_sequence, header.record_count)
        for header in topic.headers()
        if header.producer_id == 7
    ] == [(2, 2, 0)]


def test_aborted_data_goes_and_does_not_hide_what_was_before(make: Make) -> None:
    topic = make()
    transaction = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    topic.append(("a", "kept"))
    topic.append(("a", "aborted"), base_sequence=0, **transaction)
    topic.mark(commit=False)
    topic.append(("b", "committed"), base_sequence=1, **transaction)
    topic.mark(commit=True)
    topic.roll()
    topic.compact()
    assert topic.contents() == [(0, "a", "kept"), (3, "b", "committed")]


def test_a_marker_stays_until_its_transaction_is_gone_and_its_horizon_has_passed(make: Make) -> None:
    topic = make(compacted(delete_retention_ms=5000))
    transaction = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    topic.append(("a", "1"), base_sequence=0, **transaction)
    topic.mark(commit=True)
    topic.append(("a", "2"), base_sequence=1, **transaction)
    topic.mark(commit=True)
    topic.roll()
    topic.compact()

    def markers() -> list[tuple[int, bool]]:
        return [
            (header.base_offset, header.delete_horizon_ms is not None)
            for header in topic.headers()
            if header.is_control
        ]

    # The first transaction's data was met in this run: its marker only gets a horizon in the next.
    assert markers() == [(1, False), (3, False)]
    topic.append(("b", "1"))
    topic.roll()
    topic.compact()
    assert markers() == [(1, True), (3, False)]
    topic.now_ms += 5000
    topic.append(("b", "2"))
    topic.roll()
    topic.compact()
    assert markers() == [(3, False)]


def test_nothing_at_or_above_the_last_stable_offset_is_compacted(make: Make) -> None:
    topic = make()
    topic.append(("a", "1"), ("a", "2"))
    topic.roll()
    topic.append(("a", "open"), base_sequence=0, producer_id=7, producer_epoch=0, transactional=True)
    topic.append(("a", "4"))
    topic.roll()
    topic.append(("a", "6"))
    topic.roll()
    topic.compact()
    assert [value for _, _, value in topic.contents()] == ["2", "open", "4", "6"]


def test_read_committed_finds_no_aborted_transaction_once_it_is_compacted(make: Make) -> None:
    topic = make()
    transaction = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    topic.append(("a", "aborted"), base_sequence=0, **transaction)
    topic.mark(commit=False)
    topic.append(("b", "1"), base_sequence=1, **transaction)
    topic.mark(commit=True)
    topic.roll()
    before = topic.log.read(0, 1 << 20, committed=True)
    assert len(before.aborted) == 1  # type: ignore[union-attr]
    topic.compact()
    # The marker's transaction was met in this run, so it is still told; after the next one it is not.
    topic.append(("c", "1"))
    topic.roll()
    topic.compact()
    after = topic.log.read(0, 1 << 20, committed=True)
    assert list(after.aborted) == []  # type: ignore[union-attr]


# merging


def test_small_segments_become_one_that_is_no_larger_than_segment_bytes(make: Make) -> None:
    topic = make(compacted(segment_bytes=700))
    for number in range(12):
        topic.append((f"k{number % 3}", "x" * 10))
        if number % 2:
            log: object = topic.log
            log._roll(topic.now_ms)  # type: ignore[attr-defined]
    topic.append(("active", "x"))
    assert len(topic.segments()) == 7
    topic.compact()
    assert len(topic.segments()) < 7
    assert topic.contents() == [(9, "k0", "x" * 10), (10, "k1", "x" * 10), (11, "k2", "x" * 10)]


def test_what_was_done_is_counted(make: Make) -> None:
    topic = make()
    topic.append(("a", "1"), ("a", "2"), ("b", "1"))
    topic.roll()
    topic.compact()
    log: object = topic.log
    stats: CompactionStats = log.last_compaction  # type: ignore[attr-defined]
    assert (stats.runs, stats.segments_read, stats.segments_written) == (1, 1, 1)
    assert (stats.records_read, stats.records_removed) == (3, 1)
    assert stats.bytes_read > stats.bytes_written > 0
