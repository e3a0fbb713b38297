"""The consumers of the broker, by group and name.

Invariants: there are at most kbroker.http.max.consumers of them, whatever door they came by. One is found
only by the principal that made it; for all others there is none of that name. One that its user has not
called for its idle time is closed. None outlives the process: who comes back after a restart makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import uuid4

from kbroker.coordinators.groups.errors import InvalidGroupId
from kbroker.operations.consumers.consumer import Consumer
from kbroker.operations.consumers.errors import ConsumerExists, NoSuchConsumer, TooManyConsumers
from kbroker.operations.consumers.settings import ConsumerSettings
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.resources import Resources


class Consumers:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._consumers: dict[tuple[str, str], Consumer] = {}
        self._timers: dict[Consumer, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._consumers)

    def open(
        self, resources: Resources, group_id: str, settings: ConsumerSettings, name: str | None = None
    ) -> Consumer:
        """A new consumer. Without a name it gets one."""
        if not group_id:
            raise InvalidGroupId("the group id is empty")
        resources.check_group(AclOperation.READ, group_id)
        most = self._broker.settings["kbroker.http.max.consumers"]
        if len(self._consumers) >= most:
            raise TooManyConsumers(most)
        key = (group_id, name or f"consumer-{uuid4()}")
        if key in self._consumers:
            raise ConsumerExists(*key)
        consumer = self._consumers[key] = Consumer(resources, *key, settings, on_close=self._closed)
        if settings.idle_ms is not None:
            self._watch(consumer, settings.idle_ms, settings.idle_ms)
        return consumer

    def get(self, resources: Resources, group_id: str, name: str) -> Consumer:
        consumer = self._consumers.get((group_id, name))
        if consumer is None or consumer.principal != resources.principal:
            raise NoSuchConsumer(group_id, name)
        return consumer

    def of_group(self, resources: Resources, group_id: str) -> list[Consumer]:
        """The caller's own."""
        return [
            consumer
            for (group, _), consumer in self._consumers.items()
            if group == group_id and consumer.principal == resources.principal
        ]

    def close(self) -> None:
        """The broker stops: they leave their groups, so that nobody waits for them."""
        for consumer in list(self._consumers.values()):
            consumer.expire()

    def _closed(self, consumer: Consumer) -> None:
        del self._consumers[consumer.group_id, consumer.name]
        cancel = self._timers.pop(consumer, None)
        if cancel is not None:
            cancel()

    def _watch(self, consumer: Consumer, idle_ms: int, delay_ms: int) -> None:
        """Look after the delay whether it was idle all the time."""

        def look() -> None:
            del self._timers[consumer]
            since_ms = consumer.idle_since_ms
            left_ms = idle_ms if since_ms is None else since_ms + idle_ms - self._broker.clock()
            if left_ms > 0:
                self._watch(consumer, idle_ms, min(left_ms, idle_ms))
            else:
                consumer.expire()

        self._timers[consumer] = self._broker.scheduler.after(delay_ms, look)
