"""Files that do not hold what was written: each record is read, or its loss is told, to its reader too."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbroker.protocol.records import CorruptRecord
from kbroker.storage.directory import LogDirectory
from kbroker.storage.errors import OffsetOutOfRange
from kbroker.storage.interface import Log

from .faults import QuickFiles
from .support import NOW, Storage, batch, kill, read, records_in

# Five segments of six batches; an index entry for every second one.
CONFIGS = {"segment_bytes": 1000, "index_interval_bytes": 200}
ONE_SEGMENT = {"index_interval_bytes": 200}
COUNT = 29
BASES = (0, 6, 12, 18, 24)


@pytest.fixture
def file_storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "data", files=QuickFiles())


def value(offset: int) -> str:
    return f"{offset:04d} " + "x" * 80


def fill(storage: Storage, configs: dict[str, int], *, count: int = COUNT) -> None:
    log = storage.log(**configs)
    for _ in range(count):
        log.append_as_leader(batch(value(log.log_end_offset)), NOW + log.log_end_offset)


def checkpoint(storage: Storage) -> None:
    storage.directory.tick(NOW + 61_000)
    storage.directory.tick(NOW + 61_100)


def file(storage: Storage, base_offset: int, suffix: str = ".log") -> Path:
    assert storage.path is not None
    return storage.path / "topic-0" / f"{base_offset:020d}{suffix}"


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def cut(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def stop(storage: Storage, how: str) -> None:
    if how == "clean":
        storage.directory.close()
    else:
        if how == "killed, published":
            checkpoint(storage)
        kill(storage.directory)


STOPS = ("clean", "killed", "killed, published")


def read_or_lost(log: Log, count: int) -> tuple[dict[int, str], set[int]]:
    """What a reader gets that goes on behind every offset for which it is refused; and these offsets."""
    found: dict[int, str] = {}
    lost: set[int] = set()
    offset = 0
    while offset < count:
        try:
            got = read(log, offset, 300)
        except (CorruptRecord, OffsetOutOfRange):
            lost.add(offset)
            offset += 1
            continue
        records = [record for record in records_in(got) if record.offset >= offset]
        assert records, f"nothing at offset {offset}, and no word of it"
        assert records[0].offset == offset, f"the reader of {offset} got {records[0].offset}"
        for record in records:
            found[record.offset] = (record.value or b"").decode()
        offset = records[-1].offset + 1
    return found, lost


def reported(storage: Storage) -> set[int]:
    assert isinstance(storage.directory, LogDirectory)
    losses = storage.directory.losses.get(("topic", 0), {})
    return {offset for loss in losses.values() for offset in range(loss.first_offset, loss.next_offset)}


def check(storage: Storage, configs: dict[str, int], *, count: int = COUNT) -> set[int]:
    """Start on damaged files; returns the offsets that are lost."""
    for _ in range(2):  # what was found is found again
        storage.open()
        log = storage.log(**configs)
        found, lost = read_or_lost(log, count)
        assert all(found[offset] == value(offset) for offset in found)
        assert lost == reported(storage)
        assert log.log_end_offset >= count, "offsets would be given again"
        storage.directory.close()
    storage.open()
    log = storage.log(**configs)
    new = log.append_as_leader(batch("new"), NOW).base_offset
    assert new >= count
    assert [record.offset for record in records_in(read(log, new))] == [new]
    return lost


@pytest.mark.parametrize("how", STOPS)
@pytest.mark.parametrize("bit", range(0, 64, 3))
def test_a_wrong_bit_in_the_last_index_entry_costs_nothing(file_storage: Storage, how: str, bit: int) -> None:
    fill(file_storage, ONE_SEGMENT)
    checkpoint(file_storage)
    stop(file_storage, how)
    index = file(file_storage, 0, ".index")
    flip(index, index.stat().st_size - 1 - bit // 8, bit % 8)
    assert check(file_storage, ONE_SEGMENT) == set()


@pytest.mark.parametrize("bit", range(0, 64, 5))
@pytest.mark.parametrize("entry", [0, 5])
def test_a_wrong_bit_in_any_index_entry_does_not_mislead_a_reader(
    file_storage: Storage, entry: int, bit: int
) -> None:
    fill(file_storage, ONE_SEGMENT)
    file_storage.directory.close()
    flip(file(file_storage, 0, ".index"), entry * 8 + 7 - bit // 8, bit % 8)
    file_storage.open()
    for offset in range(0, COUNT, 3):
        file_storage.reopen()  # nobody remembers where an offset is
        found = records_in(read(file_storage.log(**ONE_SEGMENT), offset))
        assert [record.offset for record in found] == list(range(offset, COUNT))


@pytest.mark.parametrize("how", ["clean", "killed, published"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99, "deleted"])
@pytest.mark.parametrize("base", [0, 12, 24])
def test_a_log_file_that_was_cut_or_deleted_is_missed(
    file_storage: Storage, caplog: pytest.LogCaptureFixture, how: str, share: float | str, base: int
) -> None:
    fill(file_storage, CONFIGS)
    stop(file_storage, how)
    path = file(file_storage, base)
    if isinstance(share, str):
        path.unlink()
    else:
        cut(path, share)
    with caplog.at_level(logging.ERROR):
        lost = check(file_storage, CONFIGS)
    assert lost
    assert lost <= set(range(base, base + 6))
    if share in (0.0, "deleted"):
        assert len(lost) == min(6, COUNT - base)
    assert f"topic-0: offsets {min(lost)} to {max(lost)} are gone" in caplog.text


@pytest.mark.parametrize("share", [0.0, 0.6, "deleted"])
@pytest.mark.parametrize("base", [0, 12])
def test_an_older_segment_that_was_never_published_is_missed_after_a_kill(
    file_storage: Storage, share: float | str, base: int
) -> None:
    fill(file_storage, CONFIGS)
    kill(file_storage.directory)
    path = file(file_storage, base)
    if isinstance(share, str):
        path.unlink()
    else:
        cut(path, share)
    lost = check(file_storage, CONFIGS)
    assert lost
    assert lost <= set(range(base, base + 6))


# Every field of a batch's header, and its records.
PLACES = {
    "base offset": 6,
    "low bits of the base offset": 7,
    "length": 10,
    "high bits of the length": 8,
    "magic": 16,
    "checksum": 18,
    "attributes": 22,
    "last offset delta": 26,
    "timestamp": 40,
    "producer id": 45,
    "record count": 60,
    "records": 90,
}


@pytest.mark.parametrize("how", ["killed", "killed, published"])
@pytest.mark.parametrize("number", [0, 2, COUNT - 1])
@pytest.mark.parametrize("place", PLACES)
def test_a_wrong_bit_in_a_batch_costs_that_batch_after_a_kill(
    file_storage: Storage, how: str, number: int, place: str
) -> None:
    fill(file_storage, ONE_SEGMENT)
    size = read(file_storage.log(**ONE_SEGMENT), 0, 1).size_bytes
    stop(file_storage, how)
    assert file_storage.path is not None
    for snapshot in (file_storage.path / "topic-0").glob("*.snapshot"):
        snapshot.unlink()  # so that all of the log is looked at
    flip(file(file_storage, 0), number * size + PLACES[place])
    file_storage.open()
    found, lost = read_or_lost(file_storage.log(**ONE_SEGMENT), COUNT)
    assert lost == reported(file_storage) == {number}
    assert found == {offset: value(offset) for offset in range(COUNT) if offset != number}
    assert file_storage.log(**ONE_SEGMENT).log_end_offset == COUNT
    for offset in range(number + 1, COUNT):  # also when nobody remembers the damage
        file_storage.reopen()
        assert records_in(read(file_storage.log(**ONE_SEGMENT), offset))[0].offset == offset


def test_a_batch_of_a_later_epoch_behind_damage_is_found(file_storage: Storage) -> None:
    fill(file_storage, ONE_SEGMENT, count=10)
    size = read(file_storage.log(**ONE_SEGMENT), 0, 1).size_bytes
    log = file_storage.log(leader_epoch=7, **ONE_SEGMENT)
    for offset in range(10, 20):
        log.append_as_leader(batch(value(offset)), NOW)
    kill(file_storage.directory)
    flip(file(file_storage, 0), 9 * size + PLACES["high bits of the length"], 5)
    file_storage.open()
    found, lost = read_or_lost(file_storage.log(leader_epoch=8, **ONE_SEGMENT), 20)
    assert lost == reported(file_storage) == {9}
    assert len(found) == 19


def test_what_a_power_loss_cut_is_kept_where_whole_batches_followed(file_storage: Storage) -> None:
    fill(file_storage, CONFIGS)
    size = read(file_storage.log(**CONFIGS), 0, 1).size_bytes
    kill(file_storage.directory)
    assert file_storage.path is not None
    (file_storage.path / ".lock").write_text("another boot")
    flip(file(file_storage, 12), 2 * size + 90)
    before = file(file_storage, 12).read_bytes(), file(file_storage, 18).read_bytes()
    file_storage.open()
    assert file_storage.log(**CONFIGS).log_end_offset == 14
    kept = {path.name: path.read_bytes() for path in (file_storage.path / "topic-0").glob("*.cut")}
    assert kept[f"{12:020d}-{2 * size}.cut"] == before[0][2 * size :]
    assert kept[f"{18:020d}-0.cut"] == before[1]
    file_storage.reopen()
    assert file_storage.log(**CONFIGS).log_end_offset == 14


def test_of_a_torn_last_batch_nothing_is_kept(file_storage: Storage) -> None:
    fill(file_storage, ONE_SEGMENT)
    kill(file_storage.directory)
    path = file(file_storage, 0)
    path.write_bytes(path.read_bytes()[:-10])
    file_storage.open()
    assert file_storage.log(**ONE_SEGMENT).log_end_offset == COUNT - 1
    assert not list(path.parent.glob("*.cut"))
    assert reported(file_storage) == set()


@pytest.mark.parametrize("how", ["clean", "killed, published"])
def test_a_directory_that_was_deleted_is_missed(file_storage: Storage, how: str) -> None:
    fill(file_storage, CONFIGS)
    stop(file_storage, how)
    assert file_storage.path is not None
    shutil.rmtree(file_storage.path / "topic-0")
    directory = file_storage.open()
    assert isinstance(directory, LogDirectory)
    assert directory.missing() == [("topic", 0)]
    directory.restore("topic", 0)
    log = file_storage.log(**CONFIGS)
    assert read_or_lost(log, COUNT) == ({}, set(range(COUNT)))
    assert reported(file_storage) == set(range(COUNT))
    assert log.append_as_leader(batch("new"), NOW).base_offset == COUNT
    file_storage.directory.close()
    assert check(file_storage, CONFIGS) == set(range(COUNT))


def test_a_deleted_partition_is_not_missed_by_the_next_of_its_name(file_storage: Storage) -> None:
    fill(file_storage, CONFIGS)
    checkpoint(file_storage)
    file_storage.directory.delete_partition("topic", 0, bytes(range(16)))
    kill(file_storage.directory)
    file_storage.open()
    log = file_storage.log(topic_id=b"another topic id", **CONFIGS)
    assert log.append_as_leader(batch("new"), NOW).base_offset == 0
    kill(file_storage.directory)
    file_storage.open()
    assert file_storage.log(topic_id=b"another topic id", **CONFIGS).log_end_offset == 1
    assert reported(file_storage) == set()


CHECKPOINTS = ("recovery-point", "replication", "log-start")


CHANGES = ("deleted", "empty", "nonsense", "higher", "lower", "much higher")


@pytest.mark.parametrize(
    ("how", "name", "change"),
    [
        (how, name, change)
        for how in ("clean", "killed, published")
        for name in CHECKPOINTS
        for change in CHANGES
        # Only after a clean stop do the epochs tell as well where the log starts.
        if (how, name, change) != ("killed, published", "log-start", "higher")
    ],
)
def test_a_damaged_checkpoint_costs_no_record(
    file_storage: Storage, how: str, name: str, change: str
) -> None:
    fill(file_storage, CONFIGS)
    stop(file_storage, how)
    assert file_storage.path is not None
    path = file_storage.path / f"{name}-offset-checkpoint"
    offset = path.read_text().split()[-1]
    if change == "deleted":
        path.unlink()
    elif change in ("empty", "nonsense"):
        path.write_text("" if change == "empty" else "nonsense")
    else:
        wrong = {"higher": int(offset) + 1, "lower": max(int(offset) - 1, 0), "much higher": 2**40}[change]
        path.write_text(path.read_text().replace(f"topic 0 {offset}", f"topic 0 {wrong}"))
    assert check(file_storage, CONFIGS) == set()


@pytest.mark.parametrize("how", ["clean", "killed, published"])
def test_retention_is_no_loss(file_storage: Storage, how: str) -> None:
    configs = {**CONFIGS, "retention_ms": 1000, "file_delete_delay_ms": 0}
    fill(file_storage, configs)
    for step in range(5):
        file_storage.directory.tick(NOW + 100_000 + step)
    stop(file_storage, how)
    file_storage.now_ms = NOW + 200_000
    file_storage.open()
    log = file_storage.log(**configs)
    assert log.log_start_offset == log.log_end_offset == COUNT
    assert reported(file_storage) == set()


def test_a_wrong_timestamp_in_an_index_does_not_make_retention_delete_records(file_storage: Storage) -> None:
    configs = {**CONFIGS, "retention_ms": 3_600_000}
    fill(file_storage, configs)
    file_storage.directory.close()
    for base in BASES:
        index = file(file_storage, base, ".timeindex")
        flip(index, index.stat().st_size - 12 + 2)  # of the last timestamp, which is now half as large
    file_storage.open()
    log = file_storage.log(**configs)
    file_storage.directory.tick(NOW + 61_000)
    assert (log.log_start_offset, log.log_end_offset) == (0, COUNT)


@pytest.mark.parametrize("damage", [lambda path: flip(path, 8), lambda path: path.unlink()])
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
@pytest.mark.parametrize("base", [6, 24])
@pytest.mark.parametrize("how", STOPS)
def test_damage_to_derived_files_costs_no_record(
    file_storage: Storage, how: str, base: int, suffix: str, damage: Callable[[Path], None]
) -> None:
    fill(file_storage, CONFIGS)
    stop(file_storage, how)
    path = file(file_storage, base, suffix)
    if path.exists():
        damage(path)
    assert check(file_storage, CONFIGS) == set()
