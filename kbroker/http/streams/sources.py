"""What streams read: the partitions of a topic from given positions on, or what a group gives its member.

A member commits what its client has taken, and nothing before that: at least once. One commit is under way at
a time; what is taken meanwhile goes with the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kbroker.network.awaiting import settled
from kbroker.operations.consumers.errors import IllegalState, NotAssigned
from kbroker.operations.consumers.settings import ConsumerSettings
from kbroker.operations.group_offsets import TopicPartition
from kbroker.operations.offsets import visible_end
from kbroker.operations.records import record_bytes
from kbroker.operations.topic_reader import Gap, Part, TopicGone, TopicRead, TopicReader, gap_at
from kbroker.pending import Pending, wait
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.operations.consumers.consumer import ConsumedRecord, Consumer
    from kbroker.operations.group_offsets import Refusals
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_LONG_MS = 3_600_000  # of a poll: it ends when there is something


class ReaderSource:
    """The partitions that a reader reads."""

    def __init__(self, reader: TopicReader) -> None:
        self._reader = reader

    def read(self, max_records: int, max_bytes: int) -> Pending[TopicRead]:
        return self._reader.read(max_records, max_bytes)

    def put_back(self, read: TopicRead) -> None:
        self._reader.put_back(read)

    def seek(self, partition: int, offset: int) -> None:
        self._reader.seek(partition, offset)

    def handed_out(self) -> None:
        """The client remembers by itself how far it is."""

    async def close(self) -> None:
        self._reader.close()


class MemberSource:
    """What a group gives one of its members of a topic."""

    def __init__(
        self, resources: Resources, topic: Topic, group_id: str, settings: ConsumerSettings, *, commits: bool
    ) -> None:
        """``commits``: by itself, what its client has taken."""
        self._resources = resources
        self._topic = topic
        self._commits = commits
        self._committing: Pending[Refusals] | None = None
        self._again = False
        self._gaps: list[Gap] = []
        self._polling: Pending[TopicRead] | None = None
        self._reading: Pending[TopicRead] | None = None
        self.consumer: Consumer = resources.broker.consumers.open(resources, group_id, settings)
        self.consumer.on_out_of_range = self._out_of_range
        try:
            self.consumer.subscribe(resources, [topic.name])
        except BaseException:
            self.consumer.close()
            raise
        self._unwatch = resources.broker.topics.watch(topic.topic_id, self._topic_changed)

    def read(self, max_records: int, max_bytes: int) -> Pending[TopicRead]:
        polling = self._resources.broker.long_requests.run_in_turn(self._poll(max_records, max_bytes))
        reading: Pending[TopicRead] = Pending(polling.abandon)
        polling.then(reading.follow)
        self._polling, self._reading = polling, reading
        return reading

    def _poll(self, max_records: int, max_bytes: int) -> Steps[TopicRead]:
        self._check_topic()
        polled = self.consumer.poll(
            self._resources, max_wait_ms=_LONG_MS, max_records=max_records, max_bytes=max_bytes
        )
        return self._read_of((yield from wait(polled)) if isinstance(polled, Pending) else polled)

    def put_back(self, read: TopicRead) -> None:
        for part in read.parts:
            try:
                self.seek(part.partition, part.begin)
            except (NotAssigned, IllegalState):
                continue  # who has it now reads what is not committed

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(self._topic.name, partition), offset)

    def handed_out(self) -> None:
        if not self._commits:
            return
        if self._committing is not None:
            self._again = True
            return
        committing = self.consumer.commit(self._resources)
        if isinstance(committing, Pending) and not committing.done:
            self._committing = committing
            committing.then(self._committed)

    async def close(self) -> None:
        """Leave the group, once it knows what was taken."""
        self._unwatch()
        while self._committing is not None:
            await settled(self._committing)
        self.consumer.expire()

    def _committed(self, _: object) -> None:
        """Or refused, to one that the group has given up: another one gets the records, then."""
        self._committing = None
        if self._again and not self.consumer.closed:
            self._again = False
            self.handed_out()

    def _read_of(self, records: Sequence[ConsumedRecord]) -> TopicRead:
        parts = []
        for partition, some in groupby(records, key=lambda each: each.partition):
            found = [each.record for each in some]
            parts.append(Part(partition, found[0].offset, found[-1].offset + 1, found))
        gaps, self._gaps = self._gaps, []
        return TopicRead(parts, gaps, {}, sum(record_bytes(each.record) for each in records))

    def _out_of_range(self, at: TopicPartition, offset: int) -> int:
        log = self._resources.log_of(self._resources.topic(at.topic, AclOperation.READ), at.partition)
        end = visible_end(log, committed=self.consumer.settings.read_committed)
        gap = gap_at(at.partition, offset, log.log_start_offset, end)
        if gap is None:
            return offset
        self._gaps.append(gap)
        return gap.next_offset

    def _check_topic(self) -> None:
        if self._resources.broker.topics.get_by_id(self._topic.topic_id) is None:
            raise TopicGone(self._topic.name)

    def _topic_changed(self) -> None:
        """The poll of a topic that is gone would wait for it to come back."""
        polling, reading = self._polling, self._reading
        if polling is None or reading is None or reading.done:
            return
        try:
            self._check_topic()
        except TopicGone as gone:
            polling.abandon()
            reading.fail(gone)
