"""The group coordinator, given what it needs of the broker: settings, topics, the catalog, time."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from kbroker.coordinators.deadlines import Deadlines
from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings, MigrationPolicy
from kbroker.coordinators.groups.coordinator import GroupCoordinator
from kbroker.coordinators.groups.environment import GroupEnvironment, GroupSettings
from kbroker.coordinators.timers import Timers

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.config.settings import Settings
    from kbroker.coordinators.groups.share.groups import ShareGroups
    from kbroker.coordinators.groups.streams.groups import StreamsGroups
    from kbroker.topics.registry import Topic, Topics

T = TypeVar("T")


class TopicsView:
    """The TopicView of the group coordinator."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def partition_count(self, name: str) -> int | None:
        topic = self._topics.get(name)
        return None if topic is None else topic.partitions

    def topic_id(self, name: str) -> bytes | None:
        topic = self._topics.get(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._topics.get_by_id(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        return self._topics.names()


def open_groups(broker: Broker) -> GroupCoordinator:
    """The coordinator with all it knew before the last stop, ticking."""
    timers = Timers()
    coordinator = GroupCoordinator(
        GroupEnvironment(
            store=broker.catalog.group_store(),
            topics=TopicsView(broker.topics),
            new_id=lambda: str(uuid.uuid4()),
            settings=group_settings(broker.settings),
            timers=timers,
            soon=broker.scheduler.soon,
        ),
        GroupValues(broker, consumer_group_settings).of,
        lambda coordinator: _open_share_groups(broker, coordinator),
        lambda coordinator: _open_streams_groups(broker, coordinator),
    )
    deadlines = Deadlines(broker.scheduler, broker.clock, coordinator.tick, coordinator.next_deadline)
    broker.deadlines.append(deadlines)
    timers.on_sooner = lambda: broker.scheduler.soon(deadlines.arm)
    coordinator.load(broker.clock())
    broker.topics.on_change(lambda topic, exists: _topic_changed(coordinator, topic, exists))
    return coordinator


def _open_share_groups(broker: Broker, coordinator: GroupCoordinator) -> ShareGroups:
    from kbroker.coordinators.groups.share.groups import ShareGroups
    from kbroker.groups.share_settings import share_group_settings

    settings = GroupValues(broker, share_group_settings)
    return ShareGroups(
        coordinator.environment,
        coordinator,
        lambda: broker.share_states,
        lambda: broker.shares.rights,
        settings.of,
    )


def _open_streams_groups(broker: Broker, coordinator: GroupCoordinator) -> StreamsGroups:
    from kbroker.coordinators.groups.streams.groups import StreamsGroups
    from kbroker.groups.streams_settings import streams_group_settings

    settings = GroupValues(broker, streams_group_settings)
    return StreamsGroups(coordinator.environment, coordinator, settings.of)


def _topic_changed(coordinator: GroupCoordinator, topic: Topic, exists: bool) -> None:
    if exists:
        coordinator.topic_changed(topic.name)
    else:
        coordinator.topic_deleted(topic.name)


def group_settings(settings: Settings) -> GroupSettings:
    """What the group coordinator obeys of the settings in force."""
    delay_is_set = settings.text("group.initial.rebalance.delay.ms") is not None
    return GroupSettings(
        group_min_session_timeout_ms=settings["group.min.session.timeout.ms"],
        group_max_session_timeout_ms=settings["group.max.session.timeout.ms"],
        group_max_size=settings["group.max.size"],
        group_initial_rebalance_delay_ms=(
            settings["group.initial.rebalance.delay.ms"] if delay_is_set else None
        ),
        offset_metadata_max_bytes=settings["offset.metadata.max.bytes"],
        offsets_retention_minutes=settings["offsets.retention.minutes"],
        offsets_retention_check_interval_ms=settings["offsets.retention.check.interval.ms"],
    )


class GroupValues(Generic[T]):
    """The settings of groups of one type, which every heartbeat asks for: kept until a config changes."""

    def __init__(self, broker: Broker, settings_of: Callable[[Settings, Mapping[str, str]], T]) -> None:
        """`settings_of`: what a group with these configs of its own obeys."""
        self._broker = broker
        self._settings_of = settings_of
        self._known: dict[str | None, T] = {}  # None: without configs of its own
        broker.dynamic_configs.on_change(lambda *_: self._known.clear())

    def of(self, group_id: str) -> T:
        own = self._broker.group_configs(group_id)
        name = group_id if own else None
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._settings_of(self._broker.settings, own)
        return known


def consumer_group_settings(settings: Settings, own: Mapping[str, str]) -> ConsumerGroupSettings:
    """What a consumer group with these configs of its own obeys."""
    values = settings.group_values(own)
    interval_is_set = (
        "consumer.assignment.interval.ms" in own
        or settings.text("group.consumer.assignment.interval.ms") is not None
    )
    return ConsumerGroupSettings(
        session_timeout_ms=int(str(values["consumer.session.timeout.ms"])),
        heartbeat_interval_ms=int(str(values["consumer.heartbeat.interval.ms"])),
        assignment_interval_ms=(
            int(str(values["consumer.assignment.interval.ms"])) if interval_is_set else None
        ),
        max_size=settings["group.consumer.max.size"],
        assignors=tuple(_assignor_name(name) for name in settings["group.consumer.assignors"]),
        migration_policy=MigrationPolicy(settings["group.consumer.migration.policy"].lower()),
    )


def _assignor_name(name: str) -> str:
    """Kafka takes class names too; the two it ships are those we have."""
    return {"UniformAssignor": "uniform", "RangeAssignor": "range"}.get(name.rpartition(".")[2], name)
