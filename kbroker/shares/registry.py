"""The share partitions in use: opened by the first fetch, dropped with the last session of their group.

Invariants: what a share partition changes is stored in the order of its changes, and settled when the store
has it; one that is closed stores nothing any more.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from kbroker.coordinators.shares.partition import Change, SharePartition
from kbroker.coordinators.shares.state import UNDECIDED
from kbroker.coordinators.shares.store import NotOwner, ShareKey
from kbroker.pending import Pending, Steps, after, run, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.shares.counts import ShareCounts
from kbroker.shares.live import LiveShare
from kbroker.shares.rights import MemberRights
from kbroker.shares.start_offset import start_offset
from kbroker.shares.traced import tell_trace

if TYPE_CHECKING:
    from kbroker.coordinators.shares.leases import Lease
    from kbroker.coordinators.shares.settings import SettingsFor
    from kbroker.coordinators.shares.state import ShareState
    from kbroker.coordinators.shares.states import ShareStates
    from kbroker.coordinators.timers import Timers
    from kbroker.dead_letters.moving import DeadLetterCounts, DeadLetters
    from kbroker.requests.share_sessions import ShareSession, ShareSessions
    from kbroker.storage.interface import Log

logger = logging.getLogger("kbroker.shares")

Changes = Sequence[tuple[LiveShare, Change | None]]
Turns = Generator[None, None, None]
Settling = Sequence[tuple[LiveShare, Change]]
Failures = Mapping[ShareKey, Exception]
"""Share partitions whose change is not stored, and why."""


class Shares:
    def __init__(
        self,
        states: ShareStates,
        settings: SettingsFor,
        sessions: ShareSessions,
        timers: Timers,
        clock: Callable[[], int],
        in_turns: Callable[[Turns], object],
        open_dead_letters: Callable[[], DeadLetters],
    ) -> None:
        """`in_turns`: does what takes long, in turns with others."""
        self.counts: dict[str, ShareCounts] = defaultdict(ShareCounts)
        """By group."""
        self._open_dead_letters = open_dead_letters
        self._recovering: dict[ShareKey, Pending[None]] = {}
        self.settings = settings
        self.sessions = sessions
        self.rights = MemberRights(self.get)
        self.clock = clock
        self._in_turns = in_turns
        self._states = states
        self._timers = timers
        self._groups: dict[str, dict[tuple[bytes, int], LiveShare]] = {}
        self._opening: dict[ShareKey, Pending[LiveShare]] = {}
        sessions.on_end = self._session_ended
        states.on_replaced = self._replaced

    # share partitions

    def get(self, key: ShareKey) -> LiveShare | None:
        partitions = self._groups.get(key.group_id)
        return None if partitions is None else partitions.get(key[1:])

    def open(self, key: ShareKey, log: Log) -> LiveShare | Pending[LiveShare]:
        """The share partition; the first fetch of its group decides where it begins.

        Raises ApiError if the group was never assigned it.
        """
        live = self.get(key)
        if live is not None:
            return live
        if key in self._recovering:
            recovered: Pending[None] = Pending()  # one that stops waiting does not stop the others
            self._recovering[key].then(recovered.follow)
            return after(recovered, lambda _: self.open(key, log))
        opening = self._opening.get(key)
        if opening is None:
            state = self._states.get(key)
            if state is None:
                raise _not_initialized()
            if state.start_offset != UNDECIDED:
                return self._opened(key, state, log)
            opening = run(self._decide(key, log))
            if not opening.done:
                self._opening[key] = opening
                opening.then(lambda _: self._opened_or_not(key))
        own: Pending[LiveShare] = Pending()  # one that stops waiting does not stop the others
        opening.then(own.follow)
        return own

    def in_use(self) -> list[LiveShare]:
        """All of them."""
        return [live for partitions in self._groups.values() for live in partitions.values()]

    @property
    def dead_letter_counts(self) -> Mapping[str, DeadLetterCounts]:
        """By group, of those that had any."""
        opened: DeadLetters | None = self.__dict__.get("_dead_letters")
        return {} if opened is None else opened.counts

    def store(self, changes: Changes) -> Pending[Failures]:
        """Store what share partitions have changed, in one write, and settle it.

        What they have given up is stored once it is among the dead letters, where the group has such. Each
        share partition whose change is not stored is told, with the reason: the others do not suffer.
        """
        together: list[tuple[LiveShare, Change]] = []
        parts: list[Pending[Failures]] = []
        for live, change in changes:
            if change is None:
                continue
            if change.dead and not live.closed and self.settings(live.key.group_id).dead_letter_topic:
                parts.append(self._store_dead(live, change))
            elif self._states.is_being_replaced(live.key):
                live.writes += 1
                parts.append(self._settled([(live, change)], Pending.failed(NotOwner())))
            else:
                together.append((live, change))
        if together or not parts:
            parts.append(self._store(together))
        return parts[0] if len(parts) == 1 else run(_all(parts))

    def recover_dead_letters(self) -> None:
        """Finish what a crash has interrupted; until then such share partitions are not opened."""

        def replace(key: ShareKey, state: ShareState) -> Pending[None]:
            return self._states.replace({key: state})

        self._recovering = self._dead_letters.recover(self._states.get, replace)
        for key, recovered in list(self._recovering.items()):
            recovered.then(partial(self._recovered, key))

    def _recovered(self, key: ShareKey, recovered: Pending[None]) -> None:
        del self._recovering[key]
        try:
            recovered.result()
        except Exception as error:
            logger.warning("dead letters of share group %s are not finished: %s", key.group_id, error)

    @cached_property
    def _dead_letters(self) -> DeadLetters:
        return self._open_dead_letters()

    def _store_dead(self, live: LiveShare, change: Change) -> Pending[Failures]:
        def archive() -> Pending[None]:
            if live.closed or change.state is None:
                return Pending.failed(NotOwner())
            return self._states.write({live.key: change.state})

        live.writes += 1
        moved = self._dead_letters.store(live.key, live.log, change.dead, archive)
        return self._settled([(live, change)], moved)

    def _store(self, settling: Settling) -> Pending[Failures]:
        written = {
            live.key: change.state
            for live, change in settling
            if change.state is not None and not live.closed
        }
        for live, _ in settling:
            live.writes += 1
        stored = self._states.write(written) if written else Pending.resolved(None)
        return self._settled(settling, stored)

    def _settled(self, settling: Settling, stored: Pending[None]) -> Pending[Failures]:
        """Settle them when it is stored, or is not."""
        result: Pending[Failures] = Pending()

        def settle(done: Pending[None]) -> None:
            now_ms = self.clock()
            for live, change in settling:
                live.writes -= 1
                live.partition.settle(change, stored=done.succeeded, now_ms=now_ms)
                if done.succeeded:
                    self.counts[live.key.group_id].settled(change)
                    if live.log.trace is not None:
                        tell_trace(live.log.trace, live.key.group_id, change)
                self.arm(live)
                self._drop_if_unused(live)
            try:
                done.result()
            except Exception as error:
                result.resolve({live.key: error for live, _ in settling})
            else:
                result.resolve({})

        stored.then(settle)
        return result

    def store_unwatched(self, changes: Changes) -> None:
        """The same where nobody waits for it: what is not stored happens again."""

        def done(stored: Pending[Failures]) -> None:
            for key, error in stored.result().items():
                logger.warning(
                    "what became of records of share group %s is not stored: %s", key.group_id, error
                )

        if any(change is not None for _, change in changes):
            self.store(changes).then(done)

    def arm(self, live: LiveShare) -> None:
        """Its locks may end at other times than they did."""
        if live.closed:
            return
        deadline_ms = live.partition.next_deadline()
        if deadline_ms is None:
            self._timers.cancel(live.key)
        else:
            self._timers.schedule(live.key, deadline_ms, lambda now_ms: self._expire(live, now_ms))

    # internals

    def _opened_or_not(self, key: ShareKey) -> None:
        del self._opening[key]

    def _decide(self, key: ShareKey, log: Log) -> Steps[LiveShare]:
        offset = yield from start_offset(log, self.settings(key.group_id).auto_offset_reset, self.clock())
        yield from wait(self._states.decide(key, offset))
        state = self._states.get(key)
        if state is None:  # deleted meanwhile
            raise _not_initialized()
        return self._opened(key, state, log)

    def _opened(self, key: ShareKey, state: ShareState, log: Log) -> LiveShare:
        partition = SharePartition(state, lambda: self.settings(key.group_id))
        live = LiveShare(key, partition, log)
        self._groups.setdefault(key.group_id, {})[key[1:]] = live
        self._states.attach(key, partition.state)
        self.arm(live)
        return live

    def _expire(self, live: LiveShare, now_ms: int) -> None:
        if live.closed:
            return
        self.store_unwatched([(live, live.partition.expire(now_ms))])
        self.arm(live)

    def _session_ended(self, session: ShareSession) -> None:
        used = (self.get(ShareKey(session.group_id, *each)) for each in session.partitions)
        held = [(live, live.partition.leases_of(session.member_id)) for live in used if live is not None]
        for live, _ in held:
            live.writes += 1
        self._in_turns(self._release(session.group_id, held))

    def _release(self, group_id: str, held: list[tuple[LiveShare, Sequence[Lease]]]) -> Turns:
        """Others may have their turn in between, the same member in a new session too: what it gets then is
        not concerned.
        """
        for live, leases in held:
            live.writes -= 1
            self.store_unwatched([(live, live.partition.release(leases, self.clock()))])
            self.arm(live)
            self._drop_if_unused(live)
            yield None
        if not self.sessions.has_group(group_id):
            for live in list(self._groups.get(group_id, {}).values()):
                self._drop_if_unused(live)

    def _drop_if_unused(self, live: LiveShare) -> None:
        if not live.closed and not live.writes and not self.sessions.has_group(live.key.group_id):
            self._states.detach(live.key)
            self._close(live)

    def _replaced(self, key: ShareKey) -> None:
        live = self.get(key)
        if live is not None:
            self._close(live)

    def _close(self, live: LiveShare) -> None:
        live.closed = True
        partitions = self._groups[live.key.group_id]
        del partitions[live.key[1:]]
        if not partitions:
            del self._groups[live.key.group_id]
        self._timers.cancel(live.key)
        live.wake()


def _all(parts: Sequence[Pending[Failures]]) -> Steps[Failures]:
    """Settles with the last of them."""
    failures: dict[ShareKey, Exception] = {}
    for each in parts:
        if not each.done:
            yield each
        failures |= each.result()
    return failures


def _not_initialized() -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The share group was never assigned this partition.")
