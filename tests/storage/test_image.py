"""Images: all logs as they were at one moment, whatever happens while and after they are made.

A copy of an image is opened as the broker opens it, and must have what the log had at the moment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.storage.compaction.runner import InlineRunner
from kbroker.storage.config import DirectoryConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.errors import ImageFailed, Shortage
from kbroker.storage.files import Files
from kbroker.storage.interface import Log
from kbroker.storage.memory import MemoryDirectory
from kbroker.storage.names import IMAGES
from kbroker.storage.offline.backup import content_of, make_backup, read_manifest, restore_backup
from kbroker.storage.offline.expectations import Expectations
from kbroker.storage.offline.inspection import inspect_partition

from .compacting import SETTINGS, compacted
from .support import NOW, TOPIC_ID, ManualWorker, Storage, batch, committed_records, contents, transactional

OTHER_ID = bytes(range(1, 17))
SMALL = {"segment_bytes": 400, "index_interval_bytes": 100, "file_delete_delay_ms": 0}
FILES = Files()


class Imaging:
    """A directory whose worker runs when it is told, and images of it."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self.worker = ManualWorker()
        self.storage = Storage(path / "data", worker=self.worker, settings=DirectoryConfig(**settings))
        self.made: Pending[int] | None = None
        self._image: Any = None
        self._copies = 0

    @property
    def directory(self) -> LogDirectory:
        assert isinstance(self.storage.directory, LogDirectory)
        return self.storage.directory

    def log(self, topic: str = "topic", partition: int = 0, topic_id: bytes = TOPIC_ID) -> Log:
        return self.storage.log(topic, partition, topic_id=topic_id, **SMALL)

    def begin(self) -> None:
        self._image = self.directory.begin_image("image")
        self.made = self._image.finish()

    def end(self) -> None:
        self.worker.run_all()
        assert self.made is not None
        self.made.result()

    def copied(self) -> Storage:
        """A directory restored of a backup of the image, opened."""
        self._copies += 1
        backup, restored = (self.path / f"{name}-{self._copies}" for name in ("backup", "restored"))
        make_backup(FILES, self._image.path, content_of(FILES, self._image.path), str(backup))
        restore_backup(FILES, str(backup), read_manifest(FILES, str(backup)), str(restored))
        for path in restored.iterdir():
            if path.is_dir():
                expected = Expectations(FILES, str(restored)).of((path.name[:-2], int(path.name[-1])))
                assert inspect_partition(FILES, str(path), expected=expected, records=True).problems == []
        return Storage(restored)


@pytest.fixture
def imaging(tmp_path: Path) -> Imaging:
    return Imaging(tmp_path, retention_initial_delay_ms=0, retention_check_interval_ms=1)


def fill(log: Log, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        log.append_as_leader(batch(f"value {number}", timestamp=NOW), NOW)


def values(count: int, first: int = 0) -> list[tuple[int, str]]:
    return [(number, f"value {number}") for number in range(first, first + count)]


def test_what_is_appended_after_the_moment_is_not_there(imaging: Imaging) -> None:
    log = imaging.log()
    fill(log, 23)
    imaging.begin()
    fill(log, 20, first=23)
    imaging.end()
    fill(log, 20, first=43)
    copied = imaging.copied()
    assert contents(copied.log()) == values(23)
    assert not copied.directory.clean_start
    assert contents(log) == values(63)


def test_a_log_that_was_closed_and_is_opened_meanwhile_ends_where_it_did(imaging: Imaging) -> None:
    fill(imaging.log(), 12)
    fill(imaging.log("other"), 12)
    imaging.storage.reopen()
    imaging.begin()
    fill(imaging.log(), 30, first=12)  # before the links are made
    imaging.end()
    fill(imaging.log("other"), 30, first=12)  # after it
    copied = imaging.copied()
    assert contents(copied.log()) == values(12)
    assert contents(copied.log("other")) == values(12)


def test_logs_that_nobody_opens_are_there(imaging: Imaging) -> None:
    for partition in range(5):
        fill(imaging.log(partition=partition), 10)
    imaging.storage.reopen()
    imaging.begin()
    imaging.end()
    assert imaging.made is not None
    assert imaging.made.result() == 5
    copied = imaging.copied()
    assert [contents(copied.log(partition=each)) for each in range(5)] == [values(10)] * 5


def test_records_that_are_deleted_meanwhile_are_there(imaging: Imaging) -> None:
    log = imaging.log()
    fill(log, 40)
    imaging.begin()
    log.delete_records_before(30)
    imaging.directory.tick(NOW + 1000)
    imaging.end()
    assert contents(imaging.copied().log()) == values(40)
    assert contents(log)[0] == (30, "value 30")


def test_records_that_were_deleted_before_are_not(imaging: Imaging) -> None:
    log = imaging.log()
    fill(log, 40)
    log.delete_records_before(33)
    imaging.begin()
    imaging.end()
    assert contents(imaging.copied().log()) == values(7, first=33)


def test_a_log_whose_records_are_all_deleted_goes_on_where_it_was(imaging: Imaging) -> None:
    log = imaging.log()
    fill(log, 40)
    log.delete_records_before(40)
    imaging.begin()
    imaging.end()
    copied = imaging.copied().log()
    assert (copied.log_start_offset, copied.log_end_offset) == (40, 40)


def test_a_topic_that_is_deleted_meanwhile_is_there_and_its_successor_is_not(imaging: Imaging) -> None:
    fill(imaging.log(), 20)
    imaging.begin()
    imaging.directory.delete_partition("topic", 0, TOPIC_ID)
    fill(imaging.log(topic_id=OTHER_ID), 3)
    imaging.directory.tick(NOW + 1000)
    imaging.end()
    assert contents(imaging.copied().log()) == values(20)


def test_nothing_goes_while_the_links_are_made_and_then_it_does(imaging: Imaging) -> None:
    log = imaging.log()
    fill(log, 40)
    fill(imaging.log("doomed"), 5)
    imaging.worker.run_all()
    before_segments = len(list((imaging.path / "data").glob("topic-0/*.log")))
    imaging.begin()
    log.delete_records_before(30)
    imaging.directory.delete_partition("doomed", 0, TOPIC_ID)
    before = sorted(str(path) for path in (imaging.path / "data").glob("*/*"))
    imaging.directory.tick(NOW + 60_000)
    assert sorted(str(path) for path in (imaging.path / "data").glob("*/*")) == before
    imaging.end()
    for _ in range(5):
        imaging.directory.tick(NOW + 120_000)
        imaging.worker.run_all()
    left = {path.name for path in (imaging.path / "data").iterdir() if path.is_dir()}
    assert left == {"topic-0", IMAGES}
    assert len(list((imaging.path / "data").glob("topic-0/*.log"))) < before_segments
    assert contents(imaging.copied().log("doomed")) == values(5)


def test_what_was_aborted_before_the_moment_stays_aborted(imaging: Imaging) -> None:
    log = imaging.log()
    for number in range(12):
        log.append_as_leader(transactional(number, f"value {number}"), NOW)
        log.append_control(7, 0, commit=number % 2 == 0, coordinator_epoch=0, now_ms=NOW)
    expected = committed_records(log)
    imaging.directory.tick(NOW + 60_000)
    imaging.worker.run_all()
    imaging.begin()
    imaging.end()
    fill(log, 30)
    assert len(expected) == 6
    assert committed_records(imaging.copied().log()) == expected


def test_what_producers_sent_is_known(imaging: Imaging) -> None:
    log = imaging.log()
    for number in range(20):
        log.append_as_leader(transactional(number, f"value {number}"), NOW)
    expected = [(each.producer_id, each.last_sequence) for each in log.producers()]  # type: ignore[union-attr]
    imaging.begin()
    log.append_as_leader(transactional(20, "value 20"), NOW)
    imaging.end()
    copied = imaging.copied().log()
    assert [(each.producer_id, each.last_sequence) for each in copied.producers()] == expected  # type: ignore[union-attr]
    assert copied.has_ongoing_transaction(7, 0)


def test_one_image_is_made_at_a_time(imaging: Imaging) -> None:
    imaging.begin()
    with pytest.raises(Shortage, match="already"):
        imaging.directory.begin_image("another")
    imaging.end()
    imaging.directory.begin_image("another")


def test_images_of_an_earlier_run_go_with_the_next_start(imaging: Imaging) -> None:
    fill(imaging.log(), 10)
    imaging.begin()
    imaging.end()
    imaging.storage.crash()
    imaging.worker.run_all()
    assert [path.name for path in (imaging.path / "data").iterdir() if path.is_dir()] == ["topic-0"]
    assert contents(imaging.log()) == values(10)


def test_an_image_is_removed_and_the_log_stays(imaging: Imaging) -> None:
    log = imaging.log()
    fill(log, 10)
    imaging.begin()
    imaging.end()
    imaging.directory.remove_image("image")
    imaging.worker.run_all()
    assert not (imaging.path / "data" / IMAGES).exists()
    assert contents(log) == values(10)


class NoLinks(Files):
    def link(self, source: str, target: str) -> None:
        raise OSError(95, "Operation not supported")


def test_a_file_system_without_links_is_told(tmp_path: Path) -> None:
    storage = Storage(tmp_path, files=NoLinks())
    fill(storage.log(), 1)
    made = storage.directory.begin_image("image").finish()
    with pytest.raises(ImageFailed, match="Operation not supported"):
        made.result()
    with pytest.raises(ImageFailed, match="Operation not supported"):  # and nothing waits for it any more
        storage.directory.begin_image("again").finish().result()
    assert contents(storage.log()) == values(1)


def test_there_is_none_of_memory() -> None:
    with pytest.raises(ImageFailed, match="in memory"):
        MemoryDirectory().begin_image("image")


def test_a_log_is_not_compacted_while_links_are_made(tmp_path: Path) -> None:
    """Else a record would be gone for the sake of one that came after the moment."""
    worker = ManualWorker()
    directory = LogDirectory.open(
        str(tmp_path / "data"), worker=worker, now_ms=NOW, settings=SETTINGS, runner=InlineRunner(FILES)
    )
    log = directory.log(TOPIC_ID, "topic", 0, compacted(), 0)
    fill(log, 23)
    image = directory.begin_image("image")
    image.finish()
    links = worker.jobs.pop(0)
    fill(log, 23, first=23)

    def pass_time(begin_ms: int) -> None:
        for second in range(20):
            directory.tick(begin_ms + second * 1000)
            worker.run_all()

    pass_time(NOW + 60_000)
    assert directory.compaction.segments_read == 0
    worker.jobs.append(links)
    worker.run_all()
    pass_time(NOW + 120_000)
    assert directory.compaction.segments_read > 0
    assert len(contents(log)) < 46
    make_backup(FILES, image.path, content_of(FILES, image.path), str(tmp_path / "backup"))
    manifest = read_manifest(FILES, str(tmp_path / "backup"))
    restore_backup(FILES, str(tmp_path / "backup"), manifest, str(tmp_path / "restored"))
    assert contents(Storage(tmp_path / "restored").log()) == values(23)
