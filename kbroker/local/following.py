"""The partitions that a reader without a group reads: those of its topics, also those to come.

What is there when it begins is read from its start on; what comes later, from its first record. A topic that
is deleted is read no more; one that is made anew by that name is another one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.store import TopicPartition
from kbroker.local.starts import Start, beginning
from kbroker.operations.consumers.held import SeekTo
from kbroker.operations.partitions import topic_with_partition
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.operations.consumers.consumer import Consumer
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_Found = dict[TopicPartition, bytes]
"""Partitions that are there, and the ids of their topics."""


class Following:
    def __init__(
        self,
        resources: Resources,
        consumer: Consumer,
        sources: Collection[str | TopicPartition],
        pattern: str,
    ) -> None:
        self._resources = resources
        self._consumer = consumer
        self._topics = {each for each in sources if isinstance(each, str)}
        self._partitions = {each for each in sources if not isinstance(each, str)}
        self._names = self._topics | {each.topic for each in self._partitions}
        self._pattern = pattern
        self._read: _Found = {}
        self._failure: Exception | None = None
        self._waiting: dict[Pending[None], None] = {}
        self._looking = True  # until it has begun
        self._changed = False  # since it began to look
        self._unwatch = resources.broker.topics.on_change(self._topic_changed)

    def begin(self, start: Start, *, committed: bool) -> Steps[None]:
        """Read what is there, from the start on."""
        resources, consumer = self._resources, self._consumer
        for at in self._partitions:
            if resources.find_topic(at.topic, AclOperation.READ) is not None:
                topic_with_partition(resources, *at, AclOperation.READ)
        found = yield from self._look()
        consumer.assign(resources, found)
        if isinstance(start, str):
            consumer.seek_to(found, SeekTo.BEGINNING if start == "earliest" else SeekTo.END)
        else:
            for at in found:
                offset = yield from beginning(resources, *at, start, committed=committed)
                if isinstance(start, int):
                    yield from self._check(at, start, committed=committed)
                consumer.seek(at, offset)
                yield None
        self._read = found
        self._looked()

    def end(self) -> None:
        self._unwatch()

    def until_some(self) -> Pending[None] | None:
        """Until there is something to read; None: there is. Raises what keeps it from being read."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._read:
            return None
        waiting: Pending[None] = Pending(lambda: self._waiting.pop(waiting, None))
        self._waiting[waiting] = None
        return waiting

    def _check(self, at: TopicPartition, offset: int, *, committed: bool) -> Steps[None]:
        end = yield from beginning(self._resources, *at, "latest", committed=committed)
        if offset > end:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The next offset of {at.topic}-{at.partition} is {end}: nothing can begin at {offset}.",
            )

    def _look(self) -> Steps[_Found]:
        resources = self._resources
        names = set(self._topics)
        if self._pattern:
            from kbroker.coordinators.groups.topic_regex import matching_topics

            readable: list[str] = []
            for topic in resources.each_topic(AclOperation.READ):
                if topic is not None:
                    readable.append(topic.name)
                yield None
            names |= matching_topics(self._pattern, readable)
        wanted: list[tuple[str, int | None]] = [(name, None) for name in sorted(names)]
        found: _Found = {}
        for name, partition in [*wanted, *sorted(self._partitions)]:
            resources.check_topic(AclOperation.READ, name)
            there = resources.find_topic(name, AclOperation.READ)
            if there is not None:
                for each in range(there.partitions) if partition is None else (partition,):
                    if each < there.partitions:
                        found[TopicPartition(name, each)] = there.topic_id
            yield None
        return found

    # what changes

    def _topic_changed(self, topic: Topic, exists: bool) -> None:
        if self._pattern or topic.name in self._names:
            self._changed = True
            if not self._looking:
                self._look_again()

    def _look_again(self) -> None:
        self._looking, self._changed = True, False
        self._resources.broker.scheduler.soon(self._refresh)

    def _refresh(self) -> None:
        if self._consumer.closed:
            return
        try:
            found = self._resources.broker.long_requests.run(self._look())
        except Exception as error:
            self._failed(error)
            return
        if isinstance(found, Pending):
            found.then(self._arrived)
        else:
            self._follow(found)

    def _arrived(self, settled: Pending[_Found]) -> None:
        try:
            found = settled.result()
        except Exception as error:
            self._failed(error)
        else:
            self._follow(found)

    def _follow(self, found: _Found) -> None:
        consumer = self._consumer
        if consumer.closed:
            return
        new = [at for at, topic_id in found.items() if self._read.get(at) != topic_id]
        try:
            consumer.assign(self._resources, found)
            consumer.seek_to(new, SeekTo.BEGINNING)
        except Exception as error:
            self._failed(error)
        else:
            self._read = found
            self._looked()

    def _failed(self, error: Exception) -> None:
        self._failure = error
        self._looked()

    def _looked(self) -> None:
        self._looking = False
        if self._read or self._failure is not None:
            waiting, self._waiting = self._waiting, {}
            for each in waiting:
                each.resolve(None)
        if self._changed:
            self._look_again()
