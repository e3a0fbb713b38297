"""Share sessions (KIP-932): the partitions that a member of a share group fetches from are remembered.

A session belongs to a group and a member id, and to the connection whose ShareFetch opened it: it ends with
that connection. What the member holds in the partitions that the session lists then is released.

Transitions, by the epoch in the request:

    epoch  session   ShareFetch                              ShareAcknowledge
    0      any       a new session takes the place of one    INVALID_SHARE_SESSION_EPOCH
                     that is there, and nothing is released;
                     SHARE_SESSION_LIMIT_REACHED; with
                     acknowledgements INVALID_REQUEST
    n ≠ 0  unknown   SHARE_SESSION_NOT_FOUND                 the same
    -1     known     acknowledge, then the session ends      the same
    n > 0  known     INVALID_SHARE_SESSION_EPOCH unless n is the next epoch of the session

What clients list is bounded, be the partitions there or not: in a session (INVALID_REQUEST) and in all of
them (SHARE_SESSION_LIMIT_REACHED).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from kbroker.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kbroker.requests.context import Peer

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
_MAX_INT = 2**31 - 1
_MOST_PARTITIONS = 10_000  # of a session: a fetch of so many takes some tenths of a second
_PARTITIONS_PER_SESSION = 100  # of those that there may be, on average

Partition = tuple[bytes, int]
"""Topic id and partition."""


class ShareSession:
    __slots__ = ("_partitions", "ended", "epoch", "group_id", "member_id")

    def __init__(self, group_id: str, member_id: str, partitions: Iterable[Partition]) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = 1  # the one that the next request must carry
        self.ended = False
        self._partitions = dict.fromkeys(partitions, False)  # whether the next answer must list it

    @property
    def partitions(self) -> Collection[Partition]:
        return self._partitions.keys()

    def rotated(self, epoch: int) -> list[Partition]:
        """All partitions, beginning with another one in every epoch."""
        partitions = list(self._partitions)
        first = epoch % len(partitions) if partitions else 0
        return partitions[first:] + partitions[:first]

    def update(self, listed: Iterable[Partition], forgotten: Iterable[Partition]) -> None:
        for partition in listed:
            self._partitions.setdefault(partition, True)
        for partition in forgotten:
            self._partitions.pop(partition, None)

    def is_news(self, partition: Partition, *, has_records: bool, failed: bool) -> bool:
        """Whether the answer must list a partition; remembers it as told."""
        news = has_records or failed or self._partitions.get(partition, False)
        if partition in self._partitions:
            self._partitions[partition] = failed  # the recovery from an error is news, too
        return news

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == _MAX_INT else self.epoch + 1


class ShareSessions:
    def __init__(self, limit: Callable[[], int]) -> None:
        """`limit`: how many there may be at a time."""
        self._limit = limit
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._partitions = 0  # listed in all of them
        self._groups: dict[str, int] = {}  # how many sessions each has
        self._of_peer: dict[Peer, set[ShareSession]] = {}
        self._peer_of: dict[ShareSession, Peer] = {}
        self.on_end: Callable[[ShareSession], None] | None = None
        """Called when a session has ended: what its member holds is to be released."""

    def __len__(self) -> int:
        return len(self._sessions)

    def has_group(self, group_id: str) -> bool:
        """Whether any of its members has a session."""
        return group_id in self._groups

    # requests

    def begin_fetch(
        self,
        group_id: str,
        member_id: str,
        epoch: int,
        peer: Peer,
        *,
        listed: Collection[Partition],
        forgotten: Collection[Partition],
        acknowledges: bool,
    ) -> ShareSession:
        """The session of a ShareFetch. Raises ApiError when it is not what the member thinks."""
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "The first fetch of a share session cannot acknowledge."
                )
            return self._open(group_id, member_id, listed, peer)
        if epoch == FINAL_EPOCH:
            return self._known(group_id, member_id)
        session = self._next(group_id, member_id, epoch)
        if listed or forgotten:
            before = len(session.partitions)
            more = len(listed) - sum(map(session.partitions.__contains__, listed))
            self._check_room(before + more, more)
            session.update(listed, forgotten)
            self._partitions += len(session.partitions) - before
        return session

    def begin_acknowledge(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a ShareAcknowledge. Raises ApiError as well."""
        if epoch == INITIAL_EPOCH:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "Only a fetch opens a share session.")
        if epoch == FINAL_EPOCH:
            return self._known(group_id, member_id)
        return self._next(group_id, member_id, epoch)

    def end(self, session: ShareSession) -> None:
        """The member has closed it, or its connection is gone."""
        if session.ended:
            return
        self._forget(session)
        if self.on_end is not None:
            self.on_end(session)

    # internals

    def _known(self, group_id: str, member_id: str) -> ShareSession:
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def _next(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        session = self._known(group_id, member_id)
        if epoch != session.epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.advance()
        return session

    def _open(
        self, group_id: str, member_id: str, partitions: Collection[Partition], peer: Peer
    ) -> ShareSession:
        known = self._sessions.get((group_id, member_id))
        if known is None and len(self._sessions) >= self._limit():
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self._check_room(len(partitions), len(partitions) - (0 if known is None else len(known.partitions)))
        session = ShareSession(group_id, member_id, partitions)
        self._partitions += len(session.partitions)
        self._groups[group_id] = self._groups.get(group_id, 0) + 1
        if known is not None:
            self._forget(known)
        self._sessions[group_id, member_id] = session
        self._peer_of[session] = peer
        sessions = self._of_peer.get(peer)
        if sessions is None:
            sessions = self._of_peer[peer] = set()
            peer.on_close(lambda: self._connection_closed(peer))
        sessions.add(session)
        return session

    def _check_room(self, partitions: int, more: int) -> None:
        """For a session with so many partitions, so many more than there were."""
        if partitions > _MOST_PARTITIONS:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"A share session has at most {_MOST_PARTITIONS} partitions."
            )
        most = max(self._limit() * _PARTITIONS_PER_SESSION, _MOST_PARTITIONS)
        if more > 0 and self._partitions + more > most:
            raise ApiError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED, "Share sessions list as many partitions as they may."
            )

    def _forget(self, session: ShareSession) -> None:
        session.ended = True
        self._partitions -= len(session.partitions)
        del self._sessions[session.group_id, session.member_id]
        self._of_peer[self._peer_of.pop(session)].discard(session)
        self._groups[session.group_id] -= 1
        if not self._groups[session.group_id]:
            del self._groups[session.group_id]

    def _connection_closed(self, peer: Peer) -> None:
        for session in list(self._of_peer.get(peer, ())):
            self.end(session)
        self._of_peer.pop(peer, None)
