"""Reading from code in the process: subscriptions, and records and offsets of single partitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.local.calls import Access
from kbroker.local.records import ReceivedRecord, received
from kbroker.local.starts import Isolation, Moment, Start, beginning, check_start, is_committed
from kbroker.pending import Pending, wait

if TYPE_CHECKING:
    from kbroker.coordinators.groups.store import TopicPartition
    from kbroker.local.sources import Source
    from kbroker.local.subscription import Subscription
    from kbroker.operations.consumers.settings import ConsumerSettings
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

_USUAL_RECORDS: Final = 1000
_USUAL_BYTES: Final = 1024 * 1024
_PER_PAUSE: Final = 64


class Fetched(NamedTuple):
    records: list[ReceivedRecord]
    next_offset: int
    """Where to go on."""
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class Reading(Access):
    def subscribe(
        self,
        *topics: str | TopicPartition,
        pattern: str = "",
        group: str | None = None,
        start: Start = "earliest",
        isolation: Isolation = "read_uncommitted",
        auto_commit: bool = True,
        auto_commit_interval_ms: int = 5_000,
        max_poll_interval_ms: int = 300_000,
        client_id: str = "local",
    ) -> Subscription:
        """Records of topics, or of all whose whole name the pattern (RE2) matches; also of those to come.

        With a group: as a member of it, beside others and Kafka's own clients; from where the group has got
        to, or, where it has not been, from the start, an end of the log. Without: all of them, from the start
        on; single partitions can be named, too.
        """
        from kbroker.local.subscription import Subscription

        if bool(topics) == bool(pattern):
            raise ValueError("a subscription is to topics or to a pattern: name one of the two")
        check_start(start)
        from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset

        settings = ConsumerSettings(
            auto_offset_reset=OffsetReset.LATEST if start == "latest" else OffsetReset.EARLIEST,
            auto_commit=auto_commit and group is not None,
            auto_commit_interval_ms=auto_commit_interval_ms,
            read_committed=is_committed(isolation),
            rebalance_timeout_ms=max_poll_interval_ms,
            idle_ms=None,
            client_id=client_id,
        )
        open_source: Callable[[], Awaitable[Source]]
        if group is None:
            open_source = partial(self._open_reader, settings, topics, pattern, start)
        else:
            names = tuple(each for each in topics if isinstance(each, str))
            if len(names) < len(topics) or not isinstance(start, str):
                raise ValueError(
                    "a group decides which partitions its members read, and from which offset: with a group, "
                    "name topics, and 'earliest' or 'latest' as the start"
                )
            open_source = partial(self._open_member, group, settings, names, pattern)
        return Subscription(self._calls, open_source)

    async def fetch(
        self,
        topic: str,
        partition: int = 0,
        start: Start = "earliest",
        *,
        max_records: int = _USUAL_RECORDS,
        max_bytes: int = _USUAL_BYTES,
        max_wait_ms: int = 0,
        isolation: Isolation = "read_uncommitted",
    ) -> Fetched:
        """Records of one partition, as soon as there are any, at the latest after the wait."""
        check_start(start)
        committed = is_committed(isolation)
        from kbroker.operations.reading import ReadFrom
        from kbroker.operations.records import read_records

        def read(resources: Resources) -> Steps[Fetched]:
            offset = yield from beginning(resources, topic, partition, start, committed=committed)
            result = read_records(
                resources,
                ReadFrom(topic, partition, offset, max_bytes),
                max_records=max_records,
                max_wait_ms=max_wait_ms,
                committed=committed,
            )
            found = (yield from wait(result)) if isinstance(result, Pending) else result
            records: list[ReceivedRecord] = []
            for record in found.records:
                records.append(received(topic, partition, record))
                if not len(records) % _PER_PAUSE:
                    yield None
            return Fetched(
                records,
                found.next_offset,
                found.high_watermark,
                found.last_stable_offset,
                found.log_start_offset,
            )

        return await self._ask(read)

    async def offsets(
        self, topic: str, at: Moment = "latest", *, isolation: Isolation = "read_uncommitted"
    ) -> dict[int, int]:
        """Of each partition of a topic: where its log begins or ends, or the first record from a time on is.

        Where no record is as young, that is the end.
        """
        check_start(at)
        committed = is_committed(isolation)
        from kbroker.security.acls import AclOperation

        def find(resources: Resources) -> Steps[dict[int, int]]:
            found: dict[int, int] = {}
            for partition in range(resources.topic(topic, AclOperation.DESCRIBE).partitions):
                found[partition] = yield from beginning(resources, topic, partition, at, committed=committed)
                yield None
            return found

        return await self._ask(find)

    async def _open_member(
        self, group: str, settings: ConsumerSettings, topics: tuple[str, ...], pattern: str
    ) -> Source:
        from kbroker.local.sources import open_member

        return open_member(self._calls, self._resources, group, settings, topics, pattern)

    async def _open_reader(
        self,
        settings: ConsumerSettings,
        topics: tuple[str | TopicPartition, ...],
        pattern: str,
        start: Start,
    ) -> Source:
        from kbroker.local.sources import open_reader

        return await open_reader(self._calls, self._resources, settings, topics, pattern, start)
