"""How soon a member of a group that follows a target by epochs shall come again.

A rebalance of KIP-848 takes several heartbeats of each member, so the interval decides how long it lasts. The
broker names it in every answer: short while the group changes and for a while after, since changes come
together; then the configured one. Waiting answers would do the same, but the commits of a member share its
connection.

The short interval grows with the group, so that a group's heartbeats stay below a fixed rate.
"""

from __future__ import annotations

SHORT_INTERVAL_MS = 100
SETTLING_MS = 10_000
MAX_HEARTBEATS_PER_SECOND = 500
STUCK_INTERVAL_MS = 1_000

ASSIGNMENT_INTERVAL_MS = 100
_PARTITIONS_AND_MEMBERS_PER_MS = 20


def heartbeat_interval_ms(configured_ms: int, *, members: int, stable: bool, unchanged_for_ms: int) -> int:
    if unchanged_for_ms < SETTLING_MS:
        short = max(SHORT_INTERVAL_MS, members * 1_000 // MAX_HEARTBEATS_PER_SECOND)
    elif not stable:
        # Somebody takes long to give up a partition, or a static member is away.
        short = max(STUCK_INTERVAL_MS, members * 1_000 // MAX_HEARTBEATS_PER_SECOND)
    else:
        return configured_ms
    return min(short, configured_ms)


def assignment_interval_ms(configured_ms: int | None, *, members: int, partitions: int) -> int:
    """How long a target stays before it may be computed anew; joins that come together share one computation.

    Unless configured, such that a large group spends at most about a tenth of its time with it.
    """
    if configured_ms is not None:
        return configured_ms
    return max(ASSIGNMENT_INTERVAL_MS, (members + partitions) // _PARTITIONS_AND_MEMBERS_PER_MS)
