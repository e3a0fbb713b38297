"""What share groups obey of the settings in force: their members, and their partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kbroker.coordinators.groups.share.settings import ShareGroupSettings
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.groups.opening import GroupValues

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.config.settings import Settings


def open_share_settings(broker: Broker) -> Callable[[str], ShareSettings]:
    """The settings of the partitions of a share group, by its id."""
    return GroupValues(broker, share_settings).of


def share_group_settings(settings: Settings, own: Mapping[str, str]) -> ShareGroupSettings:
    values: dict[str, Any] = settings.group_values(own)
    interval_is_set = (
        "share.assignment.interval.ms" in own
        or settings.text("group.share.assignment.interval.ms") is not None
    )
    return ShareGroupSettings(
        session_timeout_ms=values["share.session.timeout.ms"],
        heartbeat_interval_ms=values["share.heartbeat.interval.ms"],
        assignment_interval_ms=values["share.assignment.interval.ms"] if interval_is_set else None,
        max_size=settings["group.share.max.size"],
    )


def share_settings(settings: Settings, own: Mapping[str, str]) -> ShareSettings:
    values: dict[str, Any] = settings.group_values(own)
    return ShareSettings(
        record_lock_duration_ms=values["share.record.lock.duration.ms"],
        delivery_count_limit=values["share.delivery.count.limit"],
        partition_max_record_locks=values["share.partition.max.record.locks"],
        isolation_level=values["share.isolation.level"],
        auto_offset_reset=values["share.auto.offset.reset"],
        renew_acknowledge_enable=values["share.renew.acknowledge.enable"],
        retry_backoff_ms=values["kbroker.share.retry.backoff.ms"],
        retry_backoff_multiplier=values["kbroker.share.retry.backoff.multiplier"],
        retry_backoff_max_ms=values["kbroker.share.retry.backoff.max.ms"],
        dead_letter_topic=values["errors.deadletterqueue.topic.name"],
        dead_letter_copy_record=values["errors.deadletterqueue.copy.record.enable"],
    )
