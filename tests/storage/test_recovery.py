"""Opening a partition after a stop: what is scanned, what is cut, what is kept apart."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kbroker.protocol.records import CorruptRecord
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.interface import Log

from .support import (
    NOW,
    Storage,
    batch,
    contents,
    idempotent,
    kill,
    now_or,
    read,
    records_in,
    transactional,
)

CONFIGS = {"segment_bytes": 1000, "index_interval_bytes": 200}


def fill(log: Log, count: int) -> None:
    for _ in range(count):
        log.append_as_leader(batch(f"{log.log_end_offset:04d} " + "x" * 80), NOW + log.log_end_offset)


def segment(storage: Storage, base_offset: int, suffix: str = ".log") -> Path:
    assert storage.path is not None
    return storage.path / "topic-0" / f"{base_offset:020d}{suffix}"


def last_segment(storage: Storage) -> Path:
    assert storage.path is not None
    return max((storage.path / "topic-0").glob("*.log"))


def checkpoint(storage: Storage) -> None:
    """Let the recovery point be published."""
    storage.directory.tick(NOW + 61_000)
    storage.directory.tick(NOW + 61_100)


class ReadCountingFiles(Files):
    def __init__(self) -> None:
        super().__init__()
        self.read_bytes_of_logs = 0

    def read_at(self, file: OpenFile, size: int, position: int) -> bytes:
        data = super().read_at(file, size, position)
        self.read_bytes_of_logs += len(data)
        return data


def test_nothing_is_scanned_after_a_clean_stop(file_storage: Storage) -> None:
    fill(file_storage.log(index_interval_bytes=4096), 2000)
    size = file_storage.log(index_interval_bytes=4096).size_bytes
    files = ReadCountingFiles()
    file_storage.directory.close()
    file_storage.open(files)
    assert file_storage.directory.clean_start
    assert file_storage.log().log_end_offset == 2000
    assert files.read_bytes_of_logs < size / 10


def test_a_torn_last_batch_is_cut(file_storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    fill(file_storage.log(**CONFIGS), 25)
    path = last_segment(file_storage)
    whole = path.read_bytes()
    kill(file_storage.directory)
    path.write_bytes(whole + bytes(batch("torn"))[:-3])
    with caplog.at_level(logging.WARNING):
        file_storage.open()
    assert "cutting" in caplog.text
    assert not file_storage.directory.clean_start
    log = file_storage.log(**CONFIGS)
    assert log.log_end_offset == 25
    assert path.read_bytes() == whole
    assert len(contents(log)) == 25


def test_zeros_behind_the_last_batch_are_cut(file_storage: Storage) -> None:
    fill(file_storage.log(**CONFIGS), 3)
    path = last_segment(file_storage)
    kill(file_storage.directory)
    with path.open("ab") as file:
        file.write(bytes(5000))
    file_storage.open()
    assert file_storage.log(**CONFIGS).log_end_offset == 3


def power_loss(storage: Storage) -> None:
    """For the next start: the machine went down, so that any part of what was not synced may be missing."""
    assert storage.path is not None
    (storage.path / ".lock").write_text("another boot")


def test_damage_above_the_recovery_point_cuts_the_log_there(file_storage: Storage) -> None:
    fill(file_storage.log(**CONFIGS), 25)
    path = segment(file_storage, 12)
    kill(file_storage.directory)
    power_loss(file_storage)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    file_storage.open()
    log = file_storage.log(**CONFIGS)
    assert 12 <= log.log_end_offset < 18
    assert [offset for offset, _ in contents(log)] == list(range(log.log_end_offset))
    assert not segment(file_storage, 18).exists()
    fill(log, 3)
    assert len(contents(log)) == log.log_end_offset


DAMAGES = {
    "a flipped bit": lambda data, start, size: data.__setitem__(start + 70, data[start + 70] ^ 1),
    "a wrong length": lambda data, start, size: data.__setitem__(slice(start + 8, start + 12), b"\x7f" * 4),
    "zeros": lambda data, start, size: data.__setitem__(slice(start, start + size), bytes(size)),
    "zeros over a boundary": lambda data, start, size: data.__setitem__(
        slice(start + 50, start + size + 50), bytes(size)
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("offset", [12, 14, 16])
def test_damage_below_the_recovery_point_is_reported_and_kept_apart(
    file_storage: Storage, caplog: pytest.LogCaptureFixture, kind: str, offset: int
) -> None:
    log = file_storage.log(**CONFIGS)
    fill(log, 25)
    checkpoint(file_storage)
    fill(log, 1)
    size = read(log, 14, 1).size_bytes
    path = segment(file_storage, 12)
    data = bytearray(path.read_bytes())
    DAMAGES[kind](data, (offset - 12) * size, size)
    path.write_bytes(data[: 6 * size])
    kill(file_storage.directory)
    assert file_storage.path is not None
    for snapshot in (file_storage.path / "topic-0").glob("*.snapshot"):
        snapshot.unlink()  # so that all of the log is looked at
    with caplog.at_level(logging.WARNING):
        file_storage.open()
    assert "damaged" in caplog.text
    log = file_storage.log(**CONFIGS)
    assert log.log_end_offset == 26
    last = offset + (1 if "over" in kind else 0)
    assert [each for each, _ in contents(log, offset=last + 1)] == list(range(last + 1, 26))
    for damaged in range(offset, last + 1):
        with pytest.raises(CorruptRecord):
            log.read(damaged, 1000)
    before = read(log, 0, 100_000)
    assert [record.offset for record in records_in(before)] == list(range(6))
    if offset > 12:
        assert [record.offset for record in records_in(read(log, 12, 100_000))] == list(range(12, offset))
    assert now_or(log.offset_for_timestamp(NOW)).offset == 0


def test_damage_at_the_end_of_a_segment_is_kept_apart(file_storage: Storage) -> None:
    log = file_storage.log(**CONFIGS)
    fill(log, 25)
    checkpoint(file_storage)
    size = read(log, 14, 1).size_bytes
    path = segment(file_storage, 12)
    path.write_bytes(path.read_bytes()[: 4 * size + 30])
    kill(file_storage.directory)
    assert file_storage.path is not None
    for snapshot in (file_storage.path / "topic-0").glob("*.snapshot"):
        snapshot.unlink()
    file_storage.open()
    log = file_storage.log(**CONFIGS)
    assert log.log_end_offset == 25
    assert [each for each, _ in contents(log, offset=18)] == list(range(18, 25))
    with pytest.raises(CorruptRecord):
        log.read(16, 1000)


def test_a_log_that_lost_its_end_says_so_and_goes_on(
    file_storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    log = file_storage.log()
    fill(log, 25)
    checkpoint(file_storage)
    size = read(log, 14, 1).size_bytes
    path = segment(file_storage, 0)
    path.write_bytes(path.read_bytes()[: 20 * size + 10])
    kill(file_storage.directory)
    with caplog.at_level(logging.ERROR):
        file_storage.open()
    assert "offsets 20 to 24 are gone" in caplog.text
    log = file_storage.log()
    fill(log, 1)
    assert [record.offset for record in records_in(read(log, 0))] == list(range(20))
    for lost in range(20, 25):
        with pytest.raises(CorruptRecord):
            log.read(lost, 1000)
    assert [offset for offset, _ in contents(log, offset=25)] == [25]  # no offset is given twice


def test_a_read_that_reaches_damage_says_so(file_storage: Storage) -> None:
    log = file_storage.log()
    fill(log, 25)
    size = read(log, 14, 1).size_bytes
    path = segment(file_storage, 0)
    data = bytearray(path.read_bytes())
    data[14 * size + 8 : 14 * size + 12] = b"\xff\xff\xff\xff"  # the length of a batch
    path.write_bytes(data)
    with pytest.raises(CorruptRecord):
        log.read(14, 1000)
    with pytest.raises(CorruptRecord):
        contents(log)


def test_missing_indexes_are_made_again(file_storage: Storage) -> None:
    log = file_storage.log(**CONFIGS)
    fill(log, 25)
    expected = [now_or(log.offset_for_timestamp(NOW + index)) for index in range(25)]
    file_storage.directory.close()
    for base in (0, 6, 12, 18, 24):
        for suffix in (".index", ".timeindex"):
            segment(file_storage, base, suffix).unlink()
    assert file_storage.path is not None
    (file_storage.path / ".kafka_cleanshutdown").unlink()
    (file_storage.path / "recovery-point-offset-checkpoint").unlink()
    file_storage.open()
    log = file_storage.log(**CONFIGS)
    for offset in range(25):
        assert contents(log, offset=offset)[0][0] == offset
    assert [now_or(log.offset_for_timestamp(NOW + index)) for index in range(25)] == expected


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
@pytest.mark.parametrize("damage", ["empty", "garbage", "short"])
def test_a_damaged_derived_file_is_made_again_after_a_crash(
    file_storage: Storage, suffix: str, damage: str
) -> None:
    log = file_storage.log(**CONFIGS)
    for sequence in range(10):
        log.append_as_leader(transactional(sequence, "x" * 100), NOW)
        log.append_control(7, 0, commit=bool(sequence % 2), coordinator_epoch=0, now_ms=NOW)
    log.append_as_leader(transactional(10, "open"), NOW)
    checkpoint(file_storage)
    log.append_as_leader(idempotent(0, producer_id=3), NOW)
    expected = contents(log), sorted(log.producers()), log.last_stable_offset
    aborted = [read(log, offset, committed=True).aborted for offset in range(20)]
    kill(file_storage.directory)
    assert file_storage.path is not None
    files = list((file_storage.path / "topic-0").glob(f"*{suffix}"))
    assert files
    for path in files:
        data = path.read_bytes()
        path.write_bytes({"empty": b"", "garbage": b"\xff" * len(data), "short": data[:-1]}[damage])
    (file_storage.path / "recovery-point-offset-checkpoint").unlink()
    file_storage.open()
    log = file_storage.log(**CONFIGS)
    assert (contents(log), sorted(log.producers()), log.last_stable_offset) == expected
    assert [read(log, offset, committed=True).aborted for offset in range(20)] == aborted


def test_recovery_reads_only_what_came_after_the_recovery_point(file_storage: Storage) -> None:
    log = file_storage.log()
    fill(log, 5000)
    checkpoint(file_storage)
    fill(log, 10)
    size = log.size_bytes
    kill(file_storage.directory)
    files = ReadCountingFiles()
    file_storage.open(files)
    assert file_storage.log().log_end_offset == 5010
    assert files.read_bytes_of_logs < size / 10


def test_leader_epochs_are_known_again_after_a_crash(file_storage: Storage) -> None:
    fill(file_storage.log(leader_epoch=3, **CONFIGS), 4)
    checkpoint(file_storage)
    fill(file_storage.log(leader_epoch=5, **CONFIGS), 4)
    file_storage.crash()
    log = file_storage.log(leader_epoch=6, **CONFIGS)
    assert log.latest_epoch == 5
    assert log.end_offset_for_epoch(3) == (3, 4)
    assert log.end_offset_for_epoch(5) == (5, 8)


def test_a_clean_mark_without_a_clean_end_is_not_believed(file_storage: Storage) -> None:
    fill(file_storage.log(**CONFIGS), 25)
    path = last_segment(file_storage)
    file_storage.directory.close()
    with path.open("ab") as file:
        file.write(b"garbage")
    file_storage.open()
    assert file_storage.directory.clean_start
    log = file_storage.log(**CONFIGS)
    assert log.log_end_offset == 25
    assert len(contents(log)) == 25


def test_recovering_twice_changes_nothing(file_storage: Storage) -> None:
    log = file_storage.log(**CONFIGS)
    for sequence in range(20):
        log.append_as_leader(idempotent(sequence, "x" * 80), NOW)
    expected = contents(log), sorted(log.producers())
    for _ in range(3):
        file_storage.crash()
        log = file_storage.log(**CONFIGS)
        assert (contents(log), sorted(log.producers())) == expected


def test_leftovers_of_interrupted_work_are_removed(file_storage: Storage) -> None:
    fill(file_storage.log(**CONFIGS), 5)
    for name in ("00000000000000000000.log.deleted", "leader-epoch-checkpoint.tmp"):
        assert file_storage.path is not None
        (file_storage.path / "topic-0" / name).write_bytes(b"x")
    segment(file_storage, 77, ".index").write_bytes(bytes(8))
    file_storage.crash()
    file_storage.log(**CONFIGS)
    assert file_storage.path is not None
    names = {path.name for path in (file_storage.path / "topic-0").iterdir()}
    assert not any(name.endswith((".deleted", ".tmp")) for name in names)
    assert "00000000000000000077.index" not in names


def test_an_unreadable_snapshot_is_replaced_not_kept(file_storage: Storage) -> None:
    log = file_storage.log()
    log.append_as_leader(transactional(0), NOW)
    kill(file_storage.directory)
    segment(file_storage, 1, ".snapshot").write_bytes(b"torn by a power loss")
    file_storage.open()  # recovers, and writes what it found for the next start
    file_storage.reopen()
    assert file_storage.log().has_ongoing_transaction(7, 0)


def test_indexes_that_end_in_zeros_are_read_as_kafka_left_them(file_storage: Storage) -> None:
    log = file_storage.log(index_interval_bytes=200)
    fill(log, 25)
    expected = [now_or(log.offset_for_timestamp(NOW + index)) for index in range(25)]
    for restart in (file_storage.directory.close, lambda: kill(file_storage.directory)):
        restart()
        for suffix in (".index", ".timeindex"):
            with segment(file_storage, 0, suffix).open("r+b") as index:
                index.truncate(10 * 1024 * 1024 // 12 * 12)
        file_storage.open()
        log = file_storage.log(index_interval_bytes=200)
        assert [contents(log, offset=offset)[0][0] for offset in range(25)] == list(range(25))
        assert [now_or(log.offset_for_timestamp(NOW + index)) for index in range(25)] == expected


def test_a_stale_epoch_checkpoint_is_made_again_from_the_batches(file_storage: Storage) -> None:
    fill(file_storage.log(leader_epoch=3, **CONFIGS), 10)
    checkpoint(file_storage)
    assert file_storage.path is not None
    path = file_storage.path / "topic-0" / "leader-epoch-checkpoint"
    old = path.read_bytes()
    fill(file_storage.log(leader_epoch=5, **CONFIGS), 10)
    file_storage.directory.tick(NOW + 130_000)
    file_storage.directory.tick(NOW + 130_100)
    for content in (old, b"", b"0\n1\n"):
        kill(file_storage.directory)
        path.write_bytes(content)
        file_storage.open()
        log = file_storage.log(leader_epoch=5, **CONFIGS)
        assert (log.end_offset_for_epoch(3), log.end_offset_for_epoch(5)) == ((3, 10), (5, 20))
