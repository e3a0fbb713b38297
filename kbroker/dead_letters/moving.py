"""The move of records to a dead-letter topic and their archive, as one step whatever happens in between.

    1  the intent is stored               (intents.py)
    2  the dead letters are appended      with a producer id that only this share partition has
    3  the archive is stored              by the caller's function
    4  the intent is removed

A crash before 1: the records are delivered again, nobody has seen a dead letter. After it: `recover` looks
which dead letters stand behind the offset that the intent names, by their producer id; the last of them
tells by its header where to go on. Then come 3 and 4. Neither is done twice to any effect.

What fails before the first dead letter is written fails as a whole: the records are as they were. Behind it
there is no way back, since the dead letter may have been read: the rest is tried again until it is done.

Sans-IO: logs are given, time is asked for, waiting is a Pending.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from kbroker.coordinators.shares.records import Dead
from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange, merged
from kbroker.coordinators.shares.store import NotOwner, ShareKey
from kbroker.dead_letters.building import Batch, Place, origin_offset
from kbroker.dead_letters.intents import Intent, Intents
from kbroker.dead_letters.reading import READ_BYTES, dead_letters_in, read
from kbroker.dead_letters.settings import NoDeadLetterTopic
from kbroker.pending import Pending, Steps, run, wait
from kbroker.protocol.records import increment_sequence, iter_batches, iter_records
from kbroker.storage.interface import Appended, Log
from kbroker.storage.trace_events import DEAD_LETTERED

logger = logging.getLogger("kbroker.dead_letters")

_MUCH_BYTES = 16 * 1024  # to look into records and build batches of them on the broker's thread
_RETRY_MS = 1000


class Target(NamedTuple):
    """Where dead letters of a share partition go."""

    log: Log
    copy_record: bool


class Environment(Protocol):
    """What the move needs of the broker."""

    def now_ms(self) -> int: ...

    def later(self, delay_ms: int) -> Pending[None]:
        """Resolved after this time."""
        ...

    def target(self, group_id: str, topic: str, partition: int) -> Pending[Target | None]:
        """None: the group has no dead letters. Fails with NoDeadLetterTopic if it ought to, and cannot."""
        ...

    def log(self, topic_id: bytes, partition: int) -> Log | None:
        """None: the topic is gone."""
        ...

    def append(self, log: Log, batch: memoryview) -> Pending[Appended]: ...

    def new_producer_id(self) -> Pending[int]: ...

    def aside(self, work: Callable[[], list[Batch]]) -> Pending[list[Batch]]:
        """Done while others have a turn."""
        ...


class DeadLetterCounts:
    """Of one group, since the start."""

    __slots__ = ("failed_requests", "records", "requests")

    def __init__(self) -> None:
        self.records = 0
        self.requests = 0
        """Batches that were to be appended."""
        self.failed_requests = 0


class _Progress:
    """How far the dead letters of an intent are written."""

    __slots__ = ("last_offset", "sequence", "written")

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        self.last_offset = -1
        self.written = 0


_Way = tuple[ShareKey, bytes, int]


class DeadLetters:
    def __init__(self, intents: Intents, environment: Environment) -> None:
        self._intents = intents
        self._environment = environment
        # Of a share partition and a dead-letter partition: producer id and next sequence, in this run.
        self._producers: dict[_Way, tuple[int, int]] = {}
        self.counts: dict[str, DeadLetterCounts] = defaultdict(DeadLetterCounts)
        """By group."""
        self._turns: dict[ShareKey, Pending[None]] = {}  # settles when the move before is done

    def store(
        self, key: ShareKey, source: Log, dead: Sequence[Dead], archive: Callable[[], Pending[None]]
    ) -> Pending[None]:
        """Write dead letters of these records, if the group has them, then `archive()`.

        Moves of one share partition come one after the other.
        """
        return self._in_turn(key, self._store(key, source, dead, archive))

    def recover(
        self,
        state_of: Callable[[ShareKey], ShareState | None],
        archive: Callable[[ShareKey, ShareState], Pending[None]],
    ) -> dict[ShareKey, Pending[None]]:
        """Finish what a crash has left behind. A share partition may not be used before its Pending settles.

        `archive`: takes the state that the share partition is to have.
        """
        return {
            key: self._in_turn(key, self._recover(key, intent, state_of, archive))
            for key, intent in self._intents.unfinished.items()
        }

    def _in_turn(self, key: ShareKey, steps: Steps[None]) -> Pending[None]:
        before = self._turns.get(key)

        def after_the_others() -> Steps[None]:
            if before is not None and not before.done:
                yield before
            yield from steps

        moved = run(after_the_others())
        if not moved.done:
            # One that nobody can abandon: the move goes on, whoever waits for it.
            turn = self._turns[key] = Pending()

            def done(_: object) -> None:
                turn.resolve(None)
                if self._turns.get(key) is turn:
                    del self._turns[key]

            moved.then(done)
        own: Pending[None] = Pending()
        moved.then(own.follow)
        return own

    def _store(
        self, key: ShareKey, source: Log, dead: Sequence[Dead], archive: Callable[[], Pending[None]]
    ) -> Steps[None]:
        try:
            target = yield from wait(self._environment.target(key.group_id, source.topic, key.partition))
        except NoDeadLetterTopic as why:
            logger.warning(
                "records of share group %s are archived without dead letters: %s", key.group_id, why
            )
            target = None
        if target is None:
            yield from wait(archive())
            return
        log = target.log
        yield from _refreshed(log)
        way = key, log.topic_id, log.partition
        producer_id, sequence = yield from self._producer(way)
        intent = Intent(
            source.topic, log.topic_id, log.partition, log.log_end_offset, producer_id, sequence,
            target.copy_record, sorted(dead),
        )  # fmt: skip
        yield from wait(self._intents.save(key, intent))
        progress = _Progress(sequence)
        try:
            yield from self._written(key, intent, source, log, progress)
        except Exception:
            self._forget(key)
            raise
        finally:
            self._producers[way] = producer_id, progress.sequence
        yield from self._archived(key, archive)
        _tell_trace(key, source, log, dead)

    def _recover(
        self,
        key: ShareKey,
        intent: Intent,
        state_of: Callable[[ShareKey], ShareState | None],
        archive: Callable[[ShareKey, ShareState], Pending[None]],
    ) -> Steps[None]:
        source = self._environment.log(key.topic_id, key.partition)
        log = self._environment.log(intent.target_id, intent.target_partition)
        state = state_of(key)
        if source is not None and log is not None and state is not None:
            progress = yield from self._found(log, intent)
            progress.written += 1  # whatever was found: there is no way back to a member
            yield from self._written(key, intent, source, log, progress)
        if source is None or state is None:  # the topic or the group is gone
            self._forget(key)
            return
        archived = [
            Run(max(first, state.start_offset), last, RecordState.ARCHIVED, count)
            for first, last, count, _ in intent.dead
            if last >= state.start_offset
        ]
        after = merged(state, [ShareStateChange(state.start_offset, archived)])
        yield from self._archived(key, lambda: archive(key, after))
        if log is not None:
            _tell_trace(key, source, log, intent.dead)

    def _producer(self, way: _Way) -> Steps[tuple[int, int]]:
        known = self._producers.get(way)
        if known is None:
            known = (yield from wait(self._environment.new_producer_id())), 0
        return known

    def _archived(self, key: ShareKey, archive: Callable[[], Pending[None]]) -> Steps[None]:
        while True:
            try:
                yield from wait(archive())
            except (
                NotOwner
            ):  # the group begins elsewhere now: what is dead stays so, the rest is not its state
                self._forget(key)
                raise
            except Exception as error:
                logger.warning("dead letters are written, their archive is not stored yet: %s", error)
                yield self._environment.later(_RETRY_MS)
            else:
                self._forget(key)
                return

    def _forget(self, key: ShareKey) -> None:
        """Nobody waits for it: an intent that is done can be done again."""

        def done(removed: Pending[None]) -> None:
            try:
                removed.result()
            except Exception as error:
                logger.warning("that dead letters are written is not stored: %s", error)

        self._intents.remove(key).then(done)

    def _written(
        self, key: ShareKey, intent: Intent, source: Log, log: Log, progress: _Progress
    ) -> Steps[None]:
        """All dead letters of the intent are in the log. Raises only if none is."""
        while True:
            try:
                yield from self._append_rest(key, intent, source, log, progress)
            except Exception as error:
                if not progress.written:
                    raise
                logger.warning("dead letters of %s are not all written yet: %s", intent.topic, error)
                yield self._environment.later(_RETRY_MS)
            else:
                return

    def _append_rest(
        self, key: ShareKey, intent: Intent, source: Log, log: Log, progress: _Progress
    ) -> Steps[None]:
        place = Place(key.group_id, intent.topic, key.partition)
        counts = self.counts[key.group_id]
        for dead in intent.dead:
            offset = max(dead.first_offset, progress.last_offset + 1)
            while offset <= dead.last_offset:
                data, next_offset = yield from read(source, offset, dead.last_offset)
                make = partial(
                    dead_letters_in, place, dead, data, range(offset, next_offset), intent,
                    now_ms=self._environment.now_ms(), sequence=progress.sequence,
                    max_bytes=log.config.max_message_bytes,
                )  # fmt: skip
                much = data is not None and len(data) > _MUCH_BYTES
                for batch in (yield from wait(self._environment.aside(make))) if much else make():
                    counts.requests += 1
                    try:
                        appended = yield from wait(self._environment.append(log, memoryview(batch.data)))
                    except Exception:
                        counts.failed_requests += 1
                        raise
                    counts.records += batch.records
                    progress.sequence = batch.next_sequence
                    progress.last_offset = batch.last_offset
                    progress.written += batch.records
                    if appended.durable is not None:
                        yield from wait(appended.durable)
                offset = next_offset

    def _found(self, log: Log, intent: Intent) -> Steps[_Progress]:
        """What a crash has left of the intent's dead letters."""
        yield from _refreshed(log)
        progress = _Progress(intent.sequence)
        offset = max(intent.log_end_offset, log.log_start_offset)
        while offset < log.high_watermark:
            read = log.read(offset, READ_BYTES)
            if isinstance(read, Pending):
                read = yield from wait(read)
            data = memoryview(read.data)
            for position, header in iter_batches(data):
                if header.producer_id == intent.producer_id and header.record_count:
                    *_, letter = iter_records(data[position : position + header.size_bytes])
                    progress.last_offset = origin_offset(letter)
                    progress.sequence = increment_sequence(header.last_sequence, 1)
                    progress.written += header.record_count
            offset = max(read.next_offset, offset + 1)
        return progress


def _tell_trace(key: ShareKey, source: Log, log: Log, dead: Sequence[Dead]) -> None:
    if source.trace is None:
        return
    for first, last, count, reason in dead:
        attributes: dict[str, str | int] = {
            "group": key.group_id,
            "deliveryCount": count,
            "reason": reason,
            "deadLetterTopic": log.topic,
        }
        source.trace.happened(DEAD_LETTERED, first, last, attributes)


def _refreshed(log: Log) -> Steps[None]:
    refreshing = log.refresh()
    if refreshing is not None:
        yield from wait(refreshing)
