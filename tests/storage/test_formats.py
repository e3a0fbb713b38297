"""The small files beside a log, byte for byte, and the structures behind them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.storage import names
from kbroker.storage.durability import checkpoints
from kbroker.storage.files import Files
from kbroker.storage.partition import leader_epochs, producer_snapshot, transaction_index
from kbroker.storage.partition.leader_epochs import LeaderEpochs
from kbroker.storage.partition.producer_state import BatchMetadata, ProducerEntry
from kbroker.storage.partition.snapshots import Snapshots
from kbroker.storage.partition.transaction_index import AbortedEntry
from kbroker.storage.partition_metadata import read_partition_metadata, write_partition_metadata
from kbroker.storage.segments.descriptors import Descriptors, LazyFile
from kbroker.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY, Index

from .support import storage_settings

INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.integers(0, 2**62)


# producer snapshots


def entries_of(data: bytes) -> list[tuple[object, ...]]:
    return [
        (
            entry.producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch,
            entry.last_timestamp,
            entry.current_txn_first_offset,
            entry.batches,
        )
        for entry in producer_snapshot.decode(data)
    ]


def test_a_snapshot_is_kafkas() -> None:
    entry = ProducerEntry(9, 3, 5, 1000, 40, [BatchMetadata(7, 8, 41, 42, 1000)])
    data = producer_snapshot.encode([entry])
    assert data[:2] == b"\x00\x01"
    assert data[6:10] == b"\x00\x00\x00\x01"
    assert data[10:].hex() == (
        "0000000000000009000300000008000000000000002a0000000100000000000003e8000000050000000000000028"
    )
    assert entries_of(data) == [(9, 3, 5, 1000, 40, [BatchMetadata(7, 8, 41, 42, 1000)])]


def test_a_producer_without_batches_is_kept() -> None:
    data = producer_snapshot.encode([ProducerEntry(9, 3, 5, 1000)])
    assert entries_of(data) == [(9, 3, 5, 1000, -1, [])]


def test_the_base_sequence_is_found_across_the_wrap() -> None:
    entry = ProducerEntry(1, 0, -1, 5, -1, [BatchMetadata(2**31 - 2, 1, 10, 13, 5)])
    assert entries_of(producer_snapshot.encode([entry]))[0][5] == [BatchMetadata(2**31 - 2, 1, 10, 13, 5)]


@given(position=st.integers(0, 200), bit=st.integers(0, 7))
def test_any_flipped_bit_makes_a_snapshot_corrupt(position: int, bit: int) -> None:
    entries = [ProducerEntry(number, 0, 0, 5, -1, [BatchMetadata(0, 0, 0, 0, 5)]) for number in range(4)]
    data = bytearray(producer_snapshot.encode(entries))
    data[position % len(data)] ^= 1 << bit
    with pytest.raises(producer_snapshot.CorruptSnapshot):
        producer_snapshot.decode(bytes(data))


@given(cut=st.integers(0, 100))
def test_any_cut_makes_a_snapshot_corrupt(cut: int) -> None:
    data = producer_snapshot.encode([ProducerEntry(1, 0), ProducerEntry(2, 0)])
    if cut < len(data):
        with pytest.raises(producer_snapshot.CorruptSnapshot):
            producer_snapshot.decode(data[:cut])


def test_the_newest_readable_snapshot_in_range_is_used(tmp_path: Path) -> None:
    snapshots = Snapshots(Files(), str(tmp_path))
    for offset in (0, 10, 20, 30):
        snapshots.write(offset, [ProducerEntry(offset, 0)])
    assert names_of(snapshots, 0, 30) == 30
    assert names_of(snapshots, 0, 29) == 20
    Path(snapshots.path(20)).write_bytes(b"damaged")
    Path(snapshots.path(10)).unlink()
    assert names_of(snapshots, 0, 29) == 0
    assert names_of(snapshots, 1, 29) is None
    snapshots.remove_above(10)
    assert not Path(snapshots.path(30)).exists()
    snapshots.write(5, [])
    snapshots.write(7, [])
    snapshots.remove_strays({0})
    assert [offset for offset in (0, 5, 7, 10, 20) if offset in snapshots] == [0, 7]


def names_of(snapshots: Snapshots, start: int, limit: int) -> int | None:
    found = snapshots.newest(start, limit)
    return None if found is None else found[0]


# transaction index


def test_a_transaction_index_entry_is_kafkas() -> None:
    data = transaction_index.encode([AbortedEntry(7, 1, 2, 3)])
    assert data.hex() == "00000000000000000007000000000000000100000000000000020000000000000003"


@given(st.lists(st.builds(AbortedEntry, INT64, INT64, INT64, INT64)))
def test_transaction_indexes_round_trip(entries: list[AbortedEntry]) -> None:
    assert transaction_index.decode(transaction_index.encode(entries)) == entries


def test_a_transaction_index_of_another_size_or_version_is_refused() -> None:
    for data in (bytes(33), b"\x00\x01" + bytes(32)):
        with pytest.raises(ValueError, match=r"transaction"):
            transaction_index.decode(data)


# checkpoints


@given(
    st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,40}", fullmatch=True), st.integers(0, 9999)), OFFSETS
    )
)
def test_offset_checkpoints_round_trip(offsets: checkpoints.Offsets) -> None:
    assert checkpoints.decode(checkpoints.encode(offsets.items())) == offsets


def test_an_offset_checkpoint_is_kafkas() -> None:
    assert checkpoints.decode(b"") == {}, "one that Kafka never wrote"
    assert checkpoints.encode([(("a-b", 3), 17)]) == b"0\n1\na-b 3 17\n"


@pytest.mark.parametrize(
    "data", [b"0\n", b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\nx\n", b"\xff\xff"]
)
def test_a_damaged_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        checkpoints.decode(data)
    with pytest.raises(ValueError):  # noqa: PT011
        leader_epochs.decode(data)


# leader epochs


def test_epochs_rise_with_their_offsets() -> None:
    epochs = LeaderEpochs()
    epochs.assign(1, 0)
    epochs.assign(1, 5)
    epochs.assign(3, 10)
    epochs.assign(-1, 20)
    assert epochs.entries() == [(1, 0), (3, 10)]
    epochs.assign(4, 10)  # nothing was written in epoch 3
    assert epochs.entries() == [(1, 0), (4, 10)]
    epochs.assign(2, 5)
    assert epochs.entries() == [(1, 0), (2, 5)]


def test_epochs_are_cut_at_both_ends() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10), (3, 20)])
    assert [epochs.epoch_for_offset(offset) for offset in (0, 9, 10, 25)] == [1, 1, 2, 3]
    epochs.truncate_from_start(15)
    assert epochs.entries() == [(2, 15), (3, 20)]
    assert epochs.epoch_for_offset(14) == -1
    epochs.truncate_from_end(20)
    assert epochs.entries() == [(2, 15)]
    epochs.clear()
    assert epochs.latest == -1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_whatever_is_assigned_epochs_stay_in_order(assigned: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs()
    for epoch, offset in assigned:
        epochs.assign(epoch, offset)
        entries = epochs.entries()
        assert entries == sorted(set(entries))
        assert len({entry[0] for entry in entries}) == len({entry[1] for entry in entries}) == len(entries)
    assert leader_epochs.decode(leader_epochs.encode(epochs)).entries() == epochs.entries()


# indexes


@pytest.mark.parametrize("entry", [OFFSET_ENTRY, TIME_ENTRY])
@given(
    steps=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=1500),
    persisted=st.lists(st.integers(0, 1500), max_size=3),
    targets=st.lists(st.integers(-5, 9000), min_size=1, max_size=30),
)
@storage_settings(25)
def test_an_index_finds_the_last_entry_at_or_below(
    tmp_path_factory: pytest.TempPathFactory,
    entry: object,
    steps: list[tuple[int, int]],
    persisted: list[int],
    targets: list[int],
) -> None:
    files = Files()
    path = tmp_path_factory.mktemp("index") / "00.index"
    index = Index(files, Descriptors(files), str(path), entry)  # type: ignore[arg-type]
    entries: list[tuple[int, int]] = []
    key = value = 0
    for number, (key_step, value_step) in enumerate(steps):
        key, value = key + key_step, value + value_step
        index.append(key, value)
        entries.append((key, value))
        if number in persisted:
            index.complete()
    for target in targets:
        below = [each for each in entries if each[0] <= target]
        assert index.floor(target, wait=True) == (below[-1] if below else None)
        below = [each for each in entries if each[1] <= target]
        assert index.floor_by_value(target, wait=True) == (below[-1] if below else None)
        assert index.count_below(0, target) == len([each for each in entries if each[0] < target])
    assert len(index) == len(entries)
    assert index.last(wait=True) == (entries[-1] if entries else None)
    keep = len(entries) // 2
    index.truncate(keep)
    assert index.last(wait=True) == (entries[keep - 1] if keep else None)
    index.append(10**6, 10**6)
    index.complete()
    assert path.stat().st_size == (keep + 1) * index.entry_bytes
    assert index.last(wait=True) == (10**6, 10**6)


def test_a_large_index_is_searched_on_disk(tmp_path: Path) -> None:
    files = Files()
    index = Index(files, Descriptors(files), str(tmp_path / "index"), OFFSET_ENTRY)
    for number in range(1, 20_000):
        index.append(number * 3, number * 5)
    index.complete()
    for target in (0, 2, 3, 4, 777, 30_000, 59_996, 59_997, 10**9):
        expected = min(target // 3, 19_999)
        assert index.floor(target, wait=False) == ((expected * 3, expected * 5) if expected else None)
        expected = min(target // 5, 19_999)
        assert index.floor_by_value(target, wait=False) == (
            (expected * 3, expected * 5) if expected else None
        )


def test_an_offset_index_is_kafkas(tmp_path: Path) -> None:
    files = Files()
    index = Index(files, Descriptors(files), str(tmp_path / "index"), OFFSET_ENTRY)
    index.append(5, 4097)
    index.complete()
    assert (tmp_path / "index").read_bytes().hex() == "0000000500001001"
    times = Index(files, Descriptors(files), str(tmp_path / "timeindex"), TIME_ENTRY)
    times.append(1700000000000, 5)
    times.complete()
    assert (tmp_path / "timeindex").read_bytes().hex() == "0000018bcfe5680000000005"


# names


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("topic-0", ("topic", 0)),
        ("a-b.c_d-12", ("a-b.c_d", 12)),
        ("a--1", ("a-", 1)),
        ("-1-5", ("-1", 5)),
        ("topic", None),
        ("topic-", None),
        ("-3", None),
        ("topic-x", None),
        ("topic-01", None),
        ("topic 1-0", None),
        ("topic-0.abc-delete", None),
        ("topic-0.abc-stray", None),
        ("x" * 250 + "-0", None),
    ],
)
def test_partition_directories_are_told_by_their_names(name: str, parsed: tuple[str, int] | None) -> None:
    assert names.parse_partition_directory(name) == parsed


def test_segment_files_are_told_by_their_names() -> None:
    assert names.offset_of("00000000000000000042.log", ".log") == 42
    assert names.offset_of("00000000000000000042.index", ".log") is None
    assert names.offset_of("42.log", ".log") is None
    assert names.offset_of("00000000000000000042.log.deleted", ".log") is None


def test_partition_metadata_round_trips(tmp_path: Path) -> None:
    topic_id = bytes(range(240, 256))
    write_partition_metadata(Files(), str(tmp_path), topic_id)
    assert (tmp_path / "partition.metadata").read_text() == "version: 0\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w"
    assert read_partition_metadata(Files(), str(tmp_path)) == topic_id
    (tmp_path / "partition.metadata").write_text("version: 1\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w")
    with pytest.raises(ValueError, match="version 1"):
        read_partition_metadata(Files(), str(tmp_path))


# descriptors


def test_the_least_used_files_are_closed_first(tmp_path: Path) -> None:
    files = Files()
    descriptors = Descriptors(files, capacity=3)
    lazy = [LazyFile(str(tmp_path / str(number))) for number in range(5)]
    for file in lazy[:3]:
        descriptors.open(file, create=True)
    descriptors.open(lazy[3], create=True)  # all were used: the oldest goes
    assert [file.handle is not None for file in lazy] == [False, True, True, True, False]
    descriptors.open(lazy[1])
    descriptors.open(lazy[4], create=True)
    assert lazy[1].handle is not None
    assert lazy[2].handle is None


def test_whoever_holds_a_descriptor_keeps_it(tmp_path: Path) -> None:
    files = Files()
    descriptors = Descriptors(files, capacity=1)
    first, second = (LazyFile(str(tmp_path / name)) for name in ("a", "b"))
    held = descriptors.open(first, create=True)
    files.write_all(held, b"data", 0)
    descriptors.open(second, create=True)
    assert first.handle is None
    assert files.read_at(held, 4, 0) == b"data"


def test_too_many_open_files_make_room_for_themselves(tmp_path: Path) -> None:
    import errno

    class Scarce(Files):
        def open(self, path: str, *, write: bool = False, create: bool = False) -> object:  # type: ignore[override]
            if len(descriptors) >= 4:
                raise OSError(errno.EMFILE, "too many open files")
            return super().open(path, write=write, create=create)

    descriptors = Descriptors(Scarce(), capacity=100)
    for number in range(10):
        assert descriptors.open(LazyFile(str(tmp_path / str(number))), create=True)
    assert len(descriptors) <= 4
