"""The settings of streams groups: Kafka's group.streams.*, and streams.* of a group's own configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.streams.settings import StreamsGroupSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbroker.config.settings import Settings


def streams_group_settings(settings: Settings, own: Mapping[str, str]) -> StreamsGroupSettings:
    """What a streams group with these configs of its own obeys."""
    values = settings.group_values(own)

    def if_set(name: str, value: object) -> int | None:
        """None: nobody has set it, neither for the group nor for the broker."""
        is_set = name in own or settings.text(f"group.{name}") is not None
        return int(str(value)) if is_set else None

    return StreamsGroupSettings(
        session_timeout_ms=int(str(values["streams.session.timeout.ms"])),
        heartbeat_interval_ms=int(str(values["streams.heartbeat.interval.ms"])),
        assignment_interval_ms=if_set(
            "streams.assignment.interval.ms", values["streams.assignment.interval.ms"]
        ),
        initial_rebalance_delay_ms=if_set(
            "streams.initial.rebalance.delay.ms", values["streams.initial.rebalance.delay.ms"]
        ),
        max_size=settings["group.streams.max.size"],
        num_standby_replicas=int(str(values["streams.num.standby.replicas"])),
    )
