"""Share partitions and sessions, given what they need of the broker: stored states, settings, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.deadlines import Deadlines
from kbroker.coordinators.timers import Timers
from kbroker.requests.share_sessions import ShareSessions
from kbroker.shares.registry import Shares

if TYPE_CHECKING:
    from kbroker.broker import Broker


def open_shares(broker: Broker) -> Shares:
    timers = Timers()
    deadlines = Deadlines(broker.scheduler, broker.clock, timers.fire, timers.next_deadline)
    broker.deadlines.append(deadlines)
    timers.on_sooner = lambda: broker.scheduler.soon(deadlines.arm)
    sessions = ShareSessions(lambda: int(broker.settings["group.share.max.share.sessions"]))
    return Shares(broker.share_states, broker.share_settings, sessions, timers, broker.clock)
