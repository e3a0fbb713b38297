"""A data directory: its files, its partitions, who may use it."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.storage.config import LogConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.durability.checkpoints import decode
from kbroker.storage.errors import (
    CorruptDirectory,
    DirectoryLocked,
    InconsistentTopicId,
    LogDeleted,
    LogFenced,
    StorageError,
)
from kbroker.storage.interface import PartitionSize
from kbroker.storage.worker import InlineWorker

from .support import NOW, TOPIC_ID, Storage, batch, contents, kill, read

OTHER_ID = bytes(range(1, 17))


def open_directory(path: Path, **options: object) -> LogDirectory:
    return LogDirectory.open(str(path), worker=InlineWorker(), now_ms=NOW, **options)  # type: ignore[arg-type]


def names_in(path: Path | None) -> set[str]:
    assert path is not None
    return {entry.name for entry in path.iterdir()}


def test_a_partition_has_no_directory_before_its_first_append(file_storage: Storage) -> None:
    log = file_storage.log("orders", 3)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (0, 0, 0)
    assert read(log, 0).size_bytes == 0
    assert not any(name.startswith("orders") for name in names_in(file_storage.path))
    log.append_as_leader(batch(), NOW)
    assert "orders-3" in names_in(file_storage.path)


def test_the_files_of_a_partition_are_kafkas(file_storage: Storage) -> None:
    log = file_storage.log("orders", 3, leader_epoch=2, segment_bytes=1000)
    for _ in range(10):
        log.append_as_leader(batch("x" * 100), NOW)
    file_storage.directory.close()
    assert file_storage.path is not None
    partition = file_storage.path / "orders-3"
    assert names_in(partition) == {
        *(f"{base:020d}{suffix}" for base in (0, 5) for suffix in (".log", ".index", ".timeindex")),
        "00000000000000000005.snapshot",
        "00000000000000000010.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    }
    assert (partition / "leader-epoch-checkpoint").read_text() == "0\n1\n2 0\n"
    assert (partition / "partition.metadata").read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    for name, offset in (
        ("recovery-point-offset-checkpoint", 10),
        ("log-start-offset-checkpoint", 0),
        ("replication-offset-checkpoint", 10),
    ):
        assert decode((file_storage.path / name).read_bytes()) == {("orders", 3): offset}
    assert (file_storage.path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    file_storage.open()


def test_one_object_stands_for_a_partition(storage: Storage) -> None:
    assert storage.log("a", 0) is storage.log("a", 0)
    assert storage.log("a", 0) is not storage.log("a", 1)


@pytest.mark.parametrize("topic", ["a-1", "a.b_c-d", "-", "with-0-in-it", "x" * 249])
def test_topics_keep_apart_whatever_their_names(storage: Storage, topic: str) -> None:
    for name in (topic, "a"):
        storage.log(name, 1).append_as_leader(batch(name[:20]), NOW)
    if storage.in_files:
        storage.reopen()
    assert contents(storage.log(topic, 1)) == [(0, topic[:20])]
    assert contents(storage.log("a", 1)) == [(0, "a")]


def test_a_directory_of_another_topic_id_is_not_touched(storage: Storage) -> None:
    storage.log().append_as_leader(batch("mine"), NOW)
    with pytest.raises(InconsistentTopicId):
        storage.log(topic_id=OTHER_ID)
    if storage.in_files:
        storage.reopen()
        with pytest.raises(InconsistentTopicId):
            storage.log(topic_id=OTHER_ID)
    storage.directory.delete_partition("topic", 0, OTHER_ID)
    assert contents(storage.log()) == [(0, "mine")]


def test_a_deleted_partition_is_gone_at_once_and_may_come_again(storage: Storage) -> None:
    log = storage.log()
    log.append_as_leader(batch("old"), NOW)
    told: list[bool] = []
    log.watch(lambda: told.append(True))
    storage.directory.delete_partition("topic", 0, TOPIC_ID)
    assert told
    for use in (lambda: log.append_as_leader(batch(), NOW), lambda: log.read(0, 100)):
        with pytest.raises(LogDeleted):
            use()
    assert storage.directory.offsets("topic", 0) == (0, 0)
    assert storage.directory.partitions() == []
    again = storage.log(topic_id=OTHER_ID)
    again.append_as_leader(batch("new"), NOW)
    assert contents(again) == [(0, "new")]
    storage.directory.delete_partition("never", 0, TOPIC_ID)


def test_the_files_of_a_deleted_partition_are_removed_later(file_storage: Storage) -> None:
    file_storage.log(file_delete_delay_ms=1000).append_as_leader(batch(), NOW)
    file_storage.directory.delete_partition("topic", 0, TOPIC_ID)
    assert [name for name in names_in(file_storage.path) if name.endswith("-delete")]
    assert file_storage.directory.next_deadline() <= NOW + 1000
    file_storage.directory.tick(NOW + 1000)
    assert not [name for name in names_in(file_storage.path) if "topic" in name]


def test_a_partition_with_a_long_name_can_be_deleted(file_storage: Storage) -> None:
    topic = "x" * 249
    file_storage.log(topic).append_as_leader(batch(), NOW)
    file_storage.directory.delete_partition(topic, 0, TOPIC_ID)
    (deleted,) = [name for name in names_in(file_storage.path) if name.endswith("-delete")]
    assert len(deleted) == 255


def test_a_partition_that_is_not_open_can_be_deleted(file_storage: Storage) -> None:
    file_storage.log().append_as_leader(batch(), NOW)
    file_storage.reopen()
    file_storage.directory.delete_partition("topic", 0, OTHER_ID)
    assert "topic-0" in names_in(file_storage.path)
    file_storage.directory.delete_partition("topic", 0, TOPIC_ID)
    assert "topic-0" not in names_in(file_storage.path)
    assert file_storage.directory.offsets("topic", 0) == (0, 0)
    file_storage.reopen()
    assert file_storage.directory.partitions() == []


def test_what_was_being_deleted_at_a_crash_is_removed(file_storage: Storage) -> None:
    file_storage.log().append_as_leader(batch(), NOW)
    file_storage.directory.delete_partition("topic", 0, TOPIC_ID)
    file_storage.crash()
    file_storage.directory.tick(NOW)
    assert not [name for name in names_in(file_storage.path) if "topic" in name]


def test_unknown_directories_are_reported_and_left_alone(
    file_storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    assert file_storage.path is not None
    for name in ("lost+found", "not a partition-0", "noPartition"):
        (file_storage.path / name).mkdir()
    foreign = file_storage.path / "foreign-0"
    foreign.mkdir()
    (foreign / "00000000000000000000.log").write_bytes(bytes(batch("kept")) + b"torn")
    file_storage.log().append_as_leader(batch(), NOW)
    for restart in (file_storage.reopen, file_storage.crash):
        with caplog.at_level(logging.WARNING):
            restart()
        assert "lost+found" in caplog.text
        assert (foreign / "00000000000000000000.log").read_bytes().endswith(b"torn")
        with pytest.raises(InconsistentTopicId):
            file_storage.log("foreign")
    assert {"lost+found", "not a partition-0", "noPartition", "foreign-0"} <= names_in(file_storage.path)


def test_a_directory_that_was_just_being_made_is_taken(file_storage: Storage) -> None:
    assert file_storage.path is not None
    for state in (None, b"", b"version: 0\nto", bytes(43)):
        (file_storage.path / "topic-0").mkdir()
        if state is not None:
            (file_storage.path / "topic-0" / "partition.metadata").write_bytes(state)
        file_storage.crash()
        log = file_storage.log()
        log.append_as_leader(batch("first"), NOW)
        file_storage.reopen()
        assert contents(file_storage.log()) == [(0, "first")]
        file_storage.directory.delete_partition("topic", 0, TOPIC_ID)


def test_offsets_are_known_without_opening(file_storage: Storage) -> None:
    log = file_storage.log(segment_bytes=300)
    for _ in range(10):
        log.append_as_leader(batch("x" * 100), NOW)
    log.delete_records_before(4)
    assert file_storage.directory.offsets("topic", 0) == (4, 10)
    for restart in (file_storage.reopen, file_storage.crash):
        restart()
        assert file_storage.directory.offsets("topic", 0) == (4, 10)
        assert file_storage.directory._logs == {}  # type: ignore[attr-defined]
    assert file_storage.directory.offsets("unknown", 0) == (0, 0)


def test_offsets_are_found_where_no_checkpoint_has_them(file_storage: Storage) -> None:
    file_storage.log().append_as_leader(batch(count=3), NOW)
    file_storage.directory.close()
    assert file_storage.path is not None
    (file_storage.path / "log-start-offset-checkpoint").unlink()
    file_storage.open()
    assert file_storage.directory.offsets("topic", 0) == (0, 3)


def test_sizes_count_open_and_closed_partitions(storage: Storage) -> None:
    for partition in range(3):
        storage.log("topic", partition).append_as_leader(batch("x" * 100 * partition), NOW)
    expected = {(size.partition, size.size_bytes) for size in storage.directory.sizes()}
    assert len(expected) == 3
    if storage.in_files:
        storage.reopen()
        storage.log("topic", 1)
        assert {(size.partition, size.size_bytes) for size in storage.directory.sizes()} == expected
        assert storage.directory.total_bytes() > storage.directory.usable_bytes() > 0
    assert all(isinstance(size, PartitionSize) for size in storage.directory.sizes())


def test_a_directory_has_one_user(file_storage: Storage) -> None:
    assert file_storage.path is not None
    with pytest.raises(DirectoryLocked):
        open_directory(file_storage.path)
    script = (
        "import sys; from kbroker.storage.directory import LogDirectory;"
        "from kbroker.storage.worker import InlineWorker;"
        "LogDirectory.open(sys.argv[1], worker=InlineWorker(), now_ms=0)"
    )
    other = subprocess.run(
        [sys.executable, "-c", script, str(file_storage.path)], capture_output=True, text=True, check=False
    )
    assert "DirectoryLocked" in other.stderr


def test_a_closed_directory_may_be_used_by_the_next(tmp_path: Path) -> None:
    open_directory(tmp_path / "data").close()
    open_directory(tmp_path / "data").close()


def test_meta_properties_say_whose_a_directory_is(tmp_path: Path) -> None:
    open_directory(tmp_path, cluster_id="cluster", node_id=1).close()
    text = (tmp_path / "meta.properties").read_text()
    assert "cluster.id=cluster\n" in text
    assert "node.id=1\n" in text
    assert "version=1\n" in text
    open_directory(tmp_path, cluster_id="cluster", node_id=1).close()
    for other in ({"cluster_id": "another", "node_id": 1}, {"cluster_id": "cluster", "node_id": 2}):
        with pytest.raises(CorruptDirectory):
            open_directory(tmp_path, **other)
    open_directory(tmp_path, cluster_id="cluster", node_id=1).close()


def test_a_first_start_is_clean(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "new")
    assert directory.clean_start
    kill(directory)
    directory = open_directory(tmp_path / "new")
    assert directory.clean_start  # nothing was ever appended
    directory.close()


def test_an_unreadable_checkpoint_makes_everything_be_checked(file_storage: Storage) -> None:
    file_storage.log().append_as_leader(batch(count=3), NOW)
    file_storage.directory.close()
    assert file_storage.path is not None
    (file_storage.path / "recovery-point-offset-checkpoint").write_text("nonsense")
    file_storage.open()
    assert not file_storage.directory.clean_start
    assert file_storage.log().log_end_offset == 3


def test_a_partition_that_cannot_be_recovered_does_not_stop_the_others(
    file_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for partition in range(3):
        file_storage.log("topic", partition).append_as_leader(batch(), NOW)
    kill(file_storage.directory)
    original = LogDirectory._load

    def failing(self: LogDirectory, key: tuple[str, int], *rest: object, **options: object) -> object:
        if key == ("topic", 1):
            raise OSError(5, "the disk is gone")
        return original(self, key, *rest, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(LogDirectory, "_load", failing)
        file_storage.open()
    assert file_storage.log("topic", 0).log_end_offset == 1
    with pytest.raises(LogFenced):
        file_storage.log("topic", 1)
    file_storage.reopen()
    assert file_storage.log("topic", 1).log_end_offset == 1


def test_nothing_works_on_a_closed_directory(storage: Storage) -> None:
    log = storage.log()
    log.append_as_leader(batch(), NOW)
    storage.directory.close()
    with pytest.raises(StorageError):
        log.append_as_leader(batch(), NOW)
    if storage.in_files:
        storage.open()


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Storage]:
    storage = Storage(tmp_path / "data")
    for partition in range(200):
        storage.log("topic", partition).append_as_leader(batch(str(partition)), NOW)
    yield storage
    storage.directory.close()


def test_more_partitions_than_descriptors_work(many: Storage) -> None:
    many.reopen()
    many.directory._context.descriptors._capacity = 10  # type: ignore[attr-defined]
    for round_ in range(3):
        for partition in range(200):
            log = many.log("topic", partition)
            assert log.append_as_leader(batch("again"), NOW).base_offset == round_ + 1
            assert len(contents(log)) == round_ + 2
        assert len(many.directory._context.descriptors) <= 10  # type: ignore[attr-defined]
    many.reopen()
    assert {many.directory.offsets("topic", partition) for partition in range(200)} == {(0, 4)}


def test_a_config_is_not_read_for_partitions_that_are_not_open(many: Storage) -> None:
    many.reopen()
    asked: list[str] = []

    def source(topic: str) -> LogConfig | None:
        asked.append(topic)
        return None

    many.directory.config_source = source
    many.directory.tick(NOW + 1000)
    assert asked == []
