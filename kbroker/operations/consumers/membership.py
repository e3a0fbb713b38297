"""Membership in a consumer group: the heartbeats of one member (KIP-848), sent inside the broker.

The consumer protocol mixes: a classic group whose members are ordinary consumers is taken over with its first
member of this kind, and its classic members go on beside it.

    out ── subscribe ──▶ joining ── answered ──▶ member
     ▲                      ▲                      │ │
     │ refused              └─── fenced: all is ───┘ │
     └──────────────────────── lost ◀── leave ───────┘

Invariants:
- One heartbeat is under way at a time; what changes meanwhile goes with the next, at once.
- ``assigned`` is what the coordinator gave last; ``owned`` is what it is told to be in use: partitions that
  it took back stay owned until they are released.
- A refusal that trying again cannot change ends the membership. It is kept for the user's next call, which
  joins again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from kbroker.coordinators.groups.consumer.member import LEAVE_GROUP_MEMBER_EPOCH
from kbroker.coordinators.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from kbroker.coordinators.groups.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    StaleMemberEpoch,
    UnknownMemberId,
)
from kbroker.errors import error_code
from kbroker.operations.consumers.lost_members import own_member_ids
from kbroker.operations.group_offsets import Member
from kbroker.pending import Pending
from kbroker.requests.subscribing import check_subscription
from kbroker.security.acls import AclOperation
from kbroker.topics.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kbroker.operations.consumers.settings import ConsumerSettings
    from kbroker.requests.resources import Resources

_RETRY_MS = 1_000

Partitions = Mapping[bytes, frozenset[int]]
"""By topic id."""


class Membership:
    def __init__(
        self,
        resources: Resources,
        group_id: str,
        settings: ConsumerSettings,
        *,
        on_assignment: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        """``on_assignment``: something was given or is to be given back; ``on_lost``: all is gone."""
        self.group_id = group_id
        self.member_id = f"{own_member_ids(resources.broker)}{uuid4()}"
        self.assigned: dict[bytes, frozenset[int]] = {}
        self.failure: Exception | None = None
        self._resources = resources
        self._broker = resources.broker
        self._settings = settings
        self._on_assignment = on_assignment
        self._on_lost = on_lost
        self._topics: Collection[str] = ()
        self._pattern = ""
        self._epoch = 0  # 0: not a member yet
        self._wanted = False  # there is a subscription
        self._news = True  # the subscription was not told yet
        self._owned: dict[bytes, frozenset[int]] = {}
        self._told_owned: dict[bytes, frozenset[int]] | None = None
        self._under_way = False
        self._again = False
        self._cancel: Callable[[], None] | None = None
        self._answered: list[Pending[None]] = []  # who waits until no heartbeat is under way

    @property
    def joined(self) -> bool:
        return self._epoch > 0

    @property
    def wanted(self) -> bool:
        """Whether it is a member or is about to be one."""
        return self._wanted

    @property
    def member(self) -> Member:
        return Member(self.member_id, self._epoch)

    def subscribe(self, topics: Collection[str], pattern: str = "") -> None:
        """To these topics, and to all whose whole name the pattern (RE2) matches."""
        self._topics, self._pattern = tuple(dict.fromkeys(topics)), pattern
        self._wanted = self._news = True
        self.failure = None
        self.beat()

    def own(self, partitions: Mapping[bytes, Iterable[int]]) -> None:
        """These are in use now: what is assigned and not yet released."""
        self._owned = {topic_id: frozenset(each) for topic_id, each in partitions.items() if each}
        if self.joined and self._owned != self._told_owned:
            self.beat()

    def leave(self) -> Pending[None]:
        """Give all up. Settles when the group knows it; that it does not is no failure."""
        self._wanted = False
        self._stop_timer()
        result: Pending[None] = Pending()
        self.when_answered().then(lambda _: self._leave(result))
        return result

    def when_answered(self) -> Pending[None]:
        """Once no heartbeat is under way: then the coordinator and this know the same epoch."""
        if not self._under_way:
            return Pending.resolved(None)
        answered: Pending[None] = Pending()
        self._answered.append(answered)
        return answered

    # heartbeats

    def beat(self) -> None:
        """Send a heartbeat, now or when the one under way is answered."""
        self._stop_timer()
        if not self._wanted:
            return
        if self._under_way:
            self._again = True
            return
        self._under_way = True
        self._again = False
        try:
            answer = self._send()
        except Exception as error:
            self._refused(error)
        else:
            if isinstance(answer, Pending):
                answer.then(self._arrived)
            else:
                self._accepted(answer)

    def _send(self) -> HeartbeatResult | Pending[HeartbeatResult]:
        self._broker.features.require("group.version", 1)
        resources = self._resources
        groups = resources.groups(self.group_id, AclOperation.READ)
        joins = not self.joined
        if joins or self._news:
            check_subscription(resources, list(self._topics))
        tells_owned = joins or self._owned != self._told_owned
        tells_topics = joins or self._news
        self._news = False
        self._told_owned = {} if joins else self._owned
        return groups.consumer_groups.heartbeat(
            HeartbeatRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                member_epoch=self._epoch,
                rebalance_timeout_ms=self._settings.rebalance_timeout_ms if joins else -1,
                subscribed_topic_names=self._topics if tells_topics else None,
                subscribed_topic_regex=self._pattern if tells_topics else None,
                owned=self._told_owned if tells_owned else None,
                client_id=self._settings.client_id,
                client_host=self._settings.client_host,
                may_see=partial(_finds, resources),
            ),
            self._broker.clock(),
        )

    def _arrived(self, answer: Pending[HeartbeatResult]) -> None:
        try:
            result = answer.result()
        except Exception as error:
            self._refused(error)
        else:
            self._accepted(result)

    def _accepted(self, result: HeartbeatResult) -> None:
        self._epoch = result.member_epoch
        self._ended()
        if not self._wanted:
            return
        if self._again:
            self._broker.scheduler.soon(self.beat)
        else:
            self._in(result.heartbeat_interval_ms)
        if result.assignment is not None:
            assigned = {topic_id: frozenset(held) for topic_id, held in result.assignment.items() if held}
            if assigned != self.assigned:
                self.assigned = assigned
                self._on_assignment()

    def _refused(self, error: Exception) -> None:
        joined = self.joined
        self._news = True
        self._told_owned = None
        if isinstance(error, FencedMemberEpoch | UnknownMemberId | StaleMemberEpoch) or (
            joined and isinstance(error, GroupIdNotFound)
        ):
            self._epoch = 0
            self._lose()
            self._ended()
            self._broker.scheduler.soon(self.beat)
            return
        self._ended()
        code = error_code(error)
        if code is not None and code.retriable:
            self._in(_RETRY_MS)
            return
        self.failure = error
        self._wanted = False
        self._epoch = 0
        self._lose()

    def _lose(self) -> None:
        self.assigned, self._owned = {}, {}
        self._on_lost()

    def _ended(self) -> None:
        """The one under way is answered."""
        self._under_way = False
        waiting, self._answered = self._answered, []
        for each in waiting:
            each.resolve(None)

    def _in(self, delay_ms: int) -> None:
        self._stop_timer()
        if self._wanted:
            self._cancel = self._broker.scheduler.after(delay_ms, self._due)

    def _due(self) -> None:
        self._cancel = None
        self.beat()

    def _stop_timer(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _leave(self, result: Pending[None]) -> None:
        if not self.joined:
            result.resolve(None)
            return
        self._epoch = 0
        self.assigned, self._owned = {}, {}
        self._under_way = True

        def left(_: object = None) -> None:
            self._ended()
            result.resolve(None)
            self.beat()  # who subscribed meanwhile

        request = HeartbeatRequest(self.group_id, self.member_id, LEAVE_GROUP_MEMBER_EPOCH)
        try:
            groups = self._resources.groups(self.group_id, AclOperation.READ)
            answer = groups.consumer_groups.heartbeat(request, self._broker.clock())
        except Exception:  # it is gone already, or the group waits for its session to end
            left()
            return
        if isinstance(answer, Pending):
            answer.then(left)
        else:
            left()


def _finds(resources: Resources, topic: str) -> bool:
    """Whether a pattern does: Kafka's clients leave out what is internal, too."""
    return topic not in INTERNAL_TOPICS and resources.may_topic(AclOperation.DESCRIBE, topic)
