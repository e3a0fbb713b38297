"""An internal topic: its logs are filled when somebody reads, follow from then on, and are emptied later.

Invariants:
- While nobody reads there is nothing: no records, no followers.
- Following begins before the first record is made, and what is made is written in the same turn: nothing is
  missed, and of two records with one key the later one holds what is newer.
- Filling takes turns with other requests, however much there is.
- Emptied is what nobody has read or watched for IDLE_MS. Offsets go on above all that were given out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from kbroker.internal_topics.log import InternalLog
from kbroker.pending import Pending
from kbroker.requests.long_requests import Steps
from kbroker.storage.compaction.in_memory import compact_in_steps
from kbroker.storage.config import DirectoryConfig

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.storage.config import LogConfig
    from kbroker.topics.registry import Topic

IDLE_MS = 10 * 60 * 1000
_CLEANER = DirectoryConfig(cleaner_dedupe_buffer_bytes=32 * 1024 * 1024)

KeyedRecord = tuple[bytes, bytes | None]
"""Key and value; None: a tombstone."""
Write = Callable[[str, Iterable[KeyedRecord]], None]
"""Takes records of one group or transactional id, which decides on their partition."""


class Source(Protocol):
    """What is in an internal topic."""

    def follow(self, write: Write) -> None:
        """From now on every change is written when it counts."""
        ...

    def unfollow(self) -> None: ...

    def all_records(self, write: Write) -> Steps[None]:
        """Write what there is, with pauses."""
        ...


class InternalTopic:
    def __init__(
        self, broker: Broker, topic: Topic, partition_of: Callable[[str, int], int], source: Source
    ) -> None:
        """`partition_of`: of a group or transactional id, among so many partitions."""
        self.name = topic.name
        self._broker = broker
        self._partitions = topic.partitions
        self._partition_of = partition_of
        self._source = source
        self._logs: list[InternalLog] = []
        self._filling: Pending[None] | None = None
        self._is_filled = False
        self._cleaning = False
        self._last_read_ms = 0
        self._next_offset = 0

    def log(self, topic: Topic, partition: int, config: LogConfig, leader_epoch: int) -> InternalLog:
        if not self._logs:
            self._logs = [
                InternalLog(self, each, topic.topic_id, config, leader_epoch)
                for each in range(self._partitions)
            ]
            self._empty()
        return self._logs[partition]

    def filled(self) -> Pending[None] | None:
        """None: it is. Each reader gets a result of its own, which it may abandon."""
        self._last_read_ms = self._broker.clock()
        if self._is_filled:
            return None
        if self._filling is None:
            filling = self._broker.long_requests.run(self._fill())
            if not isinstance(filling, Pending):
                return None
            self._filling = filling
            filling.then(self._filling_ended)
        else:
            filling = self._filling
        result: Pending[None] = Pending()
        filling.then(result.follow)
        return result

    def close(self) -> None:
        """The topic is gone: who watches is told, and finds it gone."""
        self._source.unfollow()
        self._is_filled = False
        for log in self._logs:
            log.delete()

    # filling and emptying

    def _fill(self) -> Steps[None]:
        try:
            self._source.follow(self._write)
            yield from self._source.all_records(self._write)
        except BaseException:
            self._source.unfollow()
            self._empty()
            raise
        self._is_filled = True
        for log in self._logs:
            log.first_dirty_offset = log.log_end_offset  # hardly a key is there twice
        self._broker.scheduler.after(IDLE_MS, self._empty_if_idle)

    def _filling_ended(self, _: Pending[None]) -> None:
        self._filling = None

    def _empty_if_idle(self) -> None:
        if not self._is_filled:
            return
        idle_ms = self._broker.clock() - self._last_read_ms
        if idle_ms < IDLE_MS or any(log.is_watched for log in self._logs):
            self._broker.scheduler.after(IDLE_MS, self._empty_if_idle)
            return
        self._source.unfollow()
        self._is_filled = False
        self._empty()

    def _empty(self) -> None:
        ends = (log.log_end_offset for log in self._logs)
        base_offset = max(self._broker.clock() * 1000, self._next_offset, *ends)
        self._next_offset = base_offset + 1
        for log in self._logs:
            log.empty(base_offset)

    # writing

    def _write(self, owner: str, records: Iterable[KeyedRecord]) -> None:
        """What it makes is written before others have a turn."""
        log = self._logs[self._partition_of(owner, self._partitions)]
        segments = len(log.segments)
        log.write(list(records), self._broker.clock())
        if self._is_filled and len(log.segments) > segments and not self._cleaning:
            self._cleaning = True
            self._broker.long_requests.run_in_turn(self._clean(log)).then(self._cleaned)

    def _clean(self, log: InternalLog) -> Steps[None]:
        for _ in compact_in_steps(log, _CLEANER, self._broker.clock()):
            yield None

    def _cleaned(self, _: Pending[None]) -> None:
        self._cleaning = False
