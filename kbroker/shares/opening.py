"""Share partitions and sessions, given what they need of the broker: stored states, settings, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.deadlines import Deadlines
from kbroker.coordinators.timers import Timers
from kbroker.requests.share_sessions import ShareSessions
from kbroker.shares.registry import Shares

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.dead_letters.moving import DeadLetters


def open_shares(broker: Broker) -> Shares:
    timers = Timers()
    deadlines = Deadlines(broker.scheduler, broker.clock, timers.fire, timers.next_deadline)
    broker.deadlines.append(deadlines)
    timers.on_sooner = lambda: broker.scheduler.soon(deadlines.arm)
    sessions = ShareSessions(lambda: int(broker.settings["group.share.max.share.sessions"]))
    shares = Shares(
        broker.share_states,
        broker.share_settings,
        sessions,
        timers,
        broker.clock,
        broker.long_requests.run,
        lambda: _open_dead_letters(broker),
    )
    if broker.has_unfinished_dead_letters:
        shares.recover_dead_letters()
    return shares


def _open_dead_letters(broker: Broker) -> DeadLetters:
    from kbroker.shares.dead_letters import open_dead_letters

    return open_dead_letters(broker)
