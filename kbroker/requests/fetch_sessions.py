"""Fetch sessions (KIP-227): what a consumer asks for is remembered, so that it sends and gets only changes.

Transitions, by the epoch in the request:

    epoch  session id   what happens
    -1     any          the session, if any, is closed; a full answer outside any session
    0      any          the session, if any, is closed; a full answer, and a new session if there is room
    n > 0  unknown      FETCH_SESSION_ID_NOT_FOUND
    n > 0  known        INVALID_FETCH_SESSION_EPOCH unless n is the next epoch; else the session's
                        partitions are updated, and the answer holds only what is new

Partitions that returned data move to the end of the session's order: with a limit on bytes every one gets its
turn.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kbroker.protocol import topic_ids
from kbroker.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kbroker.protocol.messages.fetch import FetchRequest
    from kbroker.requests.resources import TopicKey

_FINAL_EPOCH = -1
_INITIAL_EPOCH = 0
_MAX_INT = 2**31 - 1
EVICTION_MS = 120_000  # a session unused for so long makes room for a new one


class FetchedPartition:
    """What one partition is asked for, and what its reader was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: TopicKey,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    def ask_again(self, newer: FetchedPartition) -> None:
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch

    def is_news(self, size_bytes: int, high_watermark: int, log_start_offset: int, error: int) -> bool:
        """Whether an incremental answer must hold this partition; remembers it as told."""
        news = bool(size_bytes or error)
        if high_watermark != self.sent_high_watermark:
            self.sent_high_watermark = high_watermark
            news = True
        if log_start_offset != self.sent_log_start_offset:
            self.sent_log_start_offset = log_start_offset
            news = True
        if error:
            self.sent_high_watermark = -1  # the recovery from an error is news too
        return news


class FetchSession:
    __slots__ = ("epoch", "last_used_ms", "partitions", "session_id", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1  # the one that the next request must carry
        self.last_used_ms = now_ms
        self.partitions: dict[tuple[TopicKey, int], FetchedPartition] = {}

    def rotate(self, partition: FetchedPartition) -> None:
        """It had its turn: the others come first next time."""
        key = (partition.topic, partition.partition)
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = partition


class Fetch:
    """One request seen through its session."""

    __slots__ = ("incremental", "partitions", "session")

    def __init__(
        self, partitions: list[FetchedPartition], session: FetchSession | None, incremental: bool
    ) -> None:
        self.partitions = partitions
        self.session = session
        self.incremental = incremental

    @property
    def session_id(self) -> int:
        return 0 if self.session is None else self.session.session_id


class FetchSessions:
    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}  # the longest unused one first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now_ms: int) -> Fetch:
        """What this request asks for. Raises ApiError when its session is not what it thinks."""
        uses_topic_ids = version >= topic_ids.FETCH_SINCE
        # A partition that is named twice is asked for once, as the last one says.
        asked = list(
            {(each.topic, each.partition): each for each in _partitions(request, uses_topic_ids)}.values()
        )
        if version < 7 or request.session_epoch == _FINAL_EPOCH:
            self._sessions.pop(request.session_id, None)
            return Fetch(asked, None, incremental=False)
        if request.session_epoch == _INITIAL_EPOCH:
            self._sessions.pop(request.session_id, None)
            return Fetch(asked, self._create(asked, uses_topic_ids, now_ms), incremental=False)
        session = self._continue(request, uses_topic_ids, now_ms)
        for partition in asked:
            key = (partition.topic, partition.partition)
            known = session.partitions.get(key)
            if known is None:
                session.partitions[key] = partition
            else:
                known.ask_again(partition)
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if uses_topic_ids else forgotten.topic
            for number in forgotten.partitions:
                session.partitions.pop((topic, number), None)
        if not session.partitions:
            del self._sessions[session.session_id]
            return Fetch([], None, incremental=True)
        return Fetch(list(session.partitions.values()), session, incremental=True)

    def throttled(self, fetch: Fetch) -> None:
        """Its answer did not go out: a session that it would have begun does not exist."""
        if fetch.session is not None and not fetch.incremental:
            self._sessions.pop(fetch.session.session_id, None)

    def _continue(self, request: FetchRequest, uses_topic_ids: bool, now_ms: int) -> FetchSession:
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._sessions[session.session_id] = session
        session.last_used_ms = now_ms
        if request.session_epoch != session.epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if uses_topic_ids != session.uses_topic_ids:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if session.epoch == _MAX_INT else session.epoch + 1
        return session

    def _create(
        self, partitions: list[FetchedPartition], uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        if not partitions or not self._make_room(now_ms):
            return None
        session_id = random.randint(1, _MAX_INT)
        while session_id in self._sessions:
            session_id = random.randint(1, _MAX_INT)
        session = FetchSession(session_id, uses_topic_ids, now_ms)
        for partition in partitions:
            session.partitions[partition.topic, partition.partition] = partition
        self._sessions[session_id] = session
        return session

    def _make_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms <= EVICTION_MS:
            return False
        del self._sessions[oldest.session_id]
        return True


def _partitions(request: FetchRequest, uses_topic_ids: bool) -> Iterable[FetchedPartition]:
    for topic in request.topics:
        key = topic.topic_id if uses_topic_ids else topic.topic
        for partition in topic.partitions:
            yield FetchedPartition(
                key,
                partition.partition,
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
            )
