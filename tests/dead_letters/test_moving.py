"""Records become dead letters and are archived, in one step: over logs in files, killed at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kbroker.coordinators.shares.records import Dead
from kbroker.coordinators.shares.state import RecordState, Run, ShareState
from kbroker.coordinators.shares.store import NotOwner, ShareKey
from kbroker.dead_letters.building import Batch
from kbroker.dead_letters.intents import Intents
from kbroker.dead_letters.moving import DeadLetters, Target
from kbroker.dead_letters.origin import letter
from kbroker.dead_letters.settings import NoDeadLetterTopic
from kbroker.pending import Pending
from kbroker.storage.interface import Appended, Log
from tests.storage.support import NOW, Storage, batch, read_all

SOURCE_ID, DEAD_ID = b"s" * 16, b"d" * 16
KEY = ShareKey("billing", SOURCE_ID, 0)
MAX_BYTES = 700  # of a batch: some four letters
DEAD = [Dead(2, 9, 5, "limit"), Dead(12, 20, 1, "reject")]
WANTED = [*range(2, 10), *range(12, 21)]


class Killed(BaseException):
    pass


class Disk:
    """What outlives the process: logs, the catalog's entries, and the state of the share partition."""

    def __init__(self, path: Path) -> None:
        self.storage = Storage(path)
        self.entries: dict[str, str] = {}
        self.state = ShareState(0)
        self.steps_left = -1
        """Writes until the process is killed; below 0: never."""
        self.kills_before_the_write = False
        self.failures: list[Exception | None] = []
        """What comes of the next appends; None: they succeed."""

    def open(self) -> Broker:
        return Broker(self)

    def crash(self) -> Broker:
        self.steps_left = -1
        self.storage.crash()
        return Broker(self)

    def write(self, done: Callable[[], Any]) -> Any:
        if self.steps_left == 0 and self.kills_before_the_write:
            raise Killed
        result = done()
        if self.steps_left == 0:
            raise Killed
        self.steps_left -= 1
        return result

    def save_entries(self, changes: Mapping[str, str | None]) -> Pending[None]:
        def save() -> None:
            for key, value in changes.items():
                if value is None:
                    self.entries.pop(key, None)
                else:
                    self.entries[key] = value

        self.write(save)
        return Pending.resolved(None)

    def archive(self, state: ShareState) -> Pending[None]:
        def store() -> None:
            self.state = state

        self.write(store)
        return Pending.resolved(None)


class Broker:
    """The environment of the move, over the disk."""

    next_producer_id = 100

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.source = disk.storage.log("orders", topic_id=SOURCE_ID)
        self.dead = disk.storage.log("dlq.orders", topic_id=DEAD_ID, max_message_bytes=MAX_BYTES)
        self.copy_record = True
        self.refusal: Exception | None = None
        self.has_dead_letters = True
        self.waiting: list[Pending[None]] = []
        self.moves = DeadLetters(Intents(disk.save_entries, disk.entries), self)

    def now_ms(self) -> int:
        return NOW + 5

    def later(self, delay_ms: int) -> Pending[None]:
        self.waiting.append(Pending())
        return self.waiting[-1]

    def target(self, group_id: str, topic: str, partition: int) -> Pending[Target | None]:
        assert (group_id, topic, partition) == ("billing", "orders", 0)
        found: Pending[Target | None] = Pending()
        if self.refusal is not None:
            found.fail(self.refusal)
        else:
            found.resolve(Target(self.dead, self.copy_record) if self.has_dead_letters else None)
        return found

    def log(self, topic_id: bytes, partition: int) -> Log | None:
        return {SOURCE_ID: self.source, DEAD_ID: self.dead}.get(topic_id)

    def append(self, log: Log, batch: memoryview) -> Pending[Appended]:
        failure = self.disk.failures.pop(0) if self.disk.failures else None
        appended: Pending[Appended] = Pending()
        if failure is not None:
            appended.fail(failure)
        else:
            appended.resolve(self.disk.write(lambda: log.append_as_leader(batch, NOW + 5)))
        return appended

    def new_producer_id(self) -> Pending[int]:
        Broker.next_producer_id += 1
        return Pending.resolved(Broker.next_producer_id)

    def aside(self, work: Callable[[], list[Batch]]) -> Pending[list[Batch]]:
        return Pending.resolved(work())

    def store(self, dead: Sequence[Dead] = DEAD) -> Pending[None]:
        runs = [Run(first, last, RecordState.ARCHIVED, count) for first, last, count, _ in dead]
        return self.moves.store(KEY, self.source, dead, lambda: self.disk.archive(ShareState(0, runs)))

    def recover(self) -> None:
        finished = self.moves.recover(lambda _: self.disk.state, lambda _, state: self.disk.archive(state))
        for each in finished.values():
            each.result()

    def letters(self) -> list[int]:
        """The offsets that dead letters tell of, in their order."""
        return [_origin(record.headers).offset for record in read_all(self.dead)]


def _origin(headers: Any) -> Any:
    found = letter(headers)
    assert found is not None
    return found.origin


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    disk = Disk(tmp_path)
    source = disk.open().source
    for first in range(0, 30, 3):
        source.append_as_leader(batch(*(f"v{first + n}" for n in range(3))), NOW)
    return disk


def test_dead_letters_have_the_record_and_tell_of_it(disk: Disk) -> None:
    broker = disk.open()
    broker.store().result()
    assert broker.letters() == WANTED
    first, last = (read_all(broker.dead)[index] for index in (0, -1))
    assert (first.key, first.value, first.timestamp) == (b"key", b"v2", NOW + 5)
    assert _origin(first.headers) == (
        "share", "orders", 0, 2, "billing", 5, "Offset delivery count exceeded the threshold.",
    )  # fmt: skip
    assert _origin(last.headers)[4:] == ("billing", 1, "Offset rejected by client.")
    assert disk.state.runs == [Run(2, 9, RecordState.ARCHIVED, 5), Run(12, 20, RecordState.ARCHIVED, 1)]
    assert disk.entries == {}


def test_without_a_copy_they_only_tell_where_the_record_is(disk: Disk) -> None:
    broker = disk.open()
    broker.copy_record = False
    broker.store().result()
    assert broker.letters() == WANTED
    assert {(record.key, record.value) for record in read_all(broker.dead)} == {(None, None)}


def test_headers_of_the_record_come_first_and_one_too_large_is_not_copied(disk: Disk) -> None:
    from kbroker.protocol.records import Record, build_batch

    broker = disk.open()
    records = [Record(NOW, None, value, (("trace", b"1"),)) for value in (b"x", b"x" * MAX_BYTES)]
    broker.source.append_as_leader(memoryview(bytearray(build_batch(records))), NOW)
    broker.store([Dead(30, 31, 1, "reject")]).result()
    small, large = read_all(broker.dead)
    assert small.headers[0] == ("trace", b"1")
    assert (small.value, large.value) == (b"x", None)
    assert broker.letters() == [30, 31]


def test_markers_leave_no_dead_letters_and_lost_records_only_headers(disk: Disk) -> None:
    broker = disk.open()
    broker.source.append_as_leader(
        batch("t", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True), NOW
    )
    broker.source.append_control(7, 0, commit=True, coordinator_epoch=0, now_ms=NOW)
    broker.source.delete_records_before(4)
    broker.store([Dead(0, 31, 5, "limit")]).result()
    assert broker.letters() == list(range(31))
    assert [record.value for record in read_all(broker.dead)][3:5] == [None, b"v4"]


@pytest.mark.parametrize("before", [False, True], ids=["after the write", "before the write"])
@pytest.mark.parametrize("step", range(12))
def test_killed_at_any_step_nothing_is_lost_and_nothing_comes_twice(
    disk: Disk, step: int, before: bool
) -> None:
    broker = disk.open()
    broker.dead.append_as_leader(batch("of others", producer_id=9, producer_epoch=0, base_sequence=0), NOW)
    disk.steps_left, disk.kills_before_the_write = step, before
    killed = False
    try:
        broker.store().result()
    except Killed:
        killed = True
    broker = disk.crash()
    for again in range(3):  # recovering may be killed as well
        disk.steps_left = again
        try:
            broker.recover()
        except Killed:
            broker = disk.crash()
    broker = disk.crash()
    broker.recover()
    letters = [_origin(each.headers).offset for each in read_all(broker.dead) if letter(each.headers)]
    archived = {
        offset
        for run in disk.state.runs
        if run.state is RecordState.ARCHIVED
        for offset in range(run.first_offset, run.last_offset + 1)
    }
    assert letters in ([], WANTED)
    assert archived == set(letters)
    assert disk.entries == {}
    assert letters or (killed and step == 0 and before)


def test_a_later_run_writes_on_with_another_producer(disk: Disk) -> None:
    disk.open().store([Dead(0, 1, 1, "reject")]).result()
    broker = disk.crash()
    broker.store([Dead(2, 3, 1, "reject")]).result()
    broker.store([Dead(4, 5, 1, "reject")]).result()
    assert broker.letters() == [0, 1, 2, 3, 4, 5]


def test_what_fails_before_the_first_dead_letter_fails_as_a_whole(disk: Disk) -> None:
    broker = disk.open()
    disk.failures = [OSError("no space left")]
    with pytest.raises(OSError, match="no space left"):
        broker.store().result()
    assert (broker.letters(), disk.entries, disk.state.runs) == ([], {}, ())
    broker.store().result()
    assert broker.letters() == WANTED


def test_what_fails_behind_it_is_tried_again_and_the_next_waits(disk: Disk) -> None:
    broker = disk.open()
    disk.failures = [None, OSError("no space left"), None]
    moved = broker.store()
    following = broker.store([Dead(25, 25, 1, "reject")])
    assert not moved.done
    assert not following.done
    broker.waiting.pop().resolve(None)
    moved.result()
    following.result()
    assert broker.letters() == [*WANTED, 25]


def test_a_state_that_was_replaced_is_not_archived(disk: Disk) -> None:
    broker = disk.open()

    def refused() -> Pending[None]:
        pending: Pending[None] = Pending()
        pending.fail(NotOwner())
        return pending

    with pytest.raises(NotOwner):
        broker.moves.store(KEY, broker.source, DEAD, refused).result()
    assert disk.entries == {}


@pytest.mark.parametrize("refusal", [None, NoDeadLetterTopic("there is no topic dlq.x")])
def test_a_group_without_dead_letters_only_archives(
    disk: Disk, refusal: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    broker = disk.open()
    broker.has_dead_letters = False
    broker.refusal = refusal
    broker.store().result()
    assert broker.letters() == []
    assert len(disk.state.runs) == 2
    assert ("there is no topic dlq.x" in caplog.text) == (refusal is not None)
