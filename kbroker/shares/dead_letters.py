"""What dead letters of share groups need of the broker: their topics, logs, time; and what a crash has left.

Loaded with the first record that is given up in a group that has a dead-letter topic.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from kbroker.catalog.rows import DEAD_LETTERS
from kbroker.dead_letters.intents import Intents
from kbroker.dead_letters.moving import DeadLetters, Target
from kbroker.dead_letters.settings import NoDeadLetterTopic, check_name, topic_name
from kbroker.pending import Pending, Steps, run, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import MAX_DECOMPRESSED_BYTES
from kbroker.security.acls import AclOperation
from kbroker.storage.interface import Appended, TakesLong
from kbroker.topics.creation import NewTopic, check_new_topic

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.dead_letters.building import Batch
    from kbroker.storage.interface import Log
    from kbroker.topics.registry import Topic

_ENABLED = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
"""Configs of dead-letter topics that the broker makes, as Kafka makes them."""


def open_dead_letters(broker: Broker) -> DeadLetters:
    save = partial(broker.catalog.save_entries, DEAD_LETTERS)
    return DeadLetters(Intents(save, broker.stored_entries(DEAD_LETTERS)), _Environment(broker))


class _Environment:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def now_ms(self) -> int:
        return self._broker.clock()

    def later(self, delay_ms: int) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._broker.scheduler.after(delay_ms, lambda: pending.resolve(None))
        return pending

    def target(self, group_id: str, topic: str, partition: int) -> Pending[Target | None]:
        return run(self._target(group_id, topic, partition))

    def log(self, topic_id: bytes, partition: int) -> Log | None:
        resources = self._broker.own_resources
        topic = resources.find_topic(topic_id, AclOperation.READ)
        return None if topic is None else resources.log_of(topic, partition)

    def append(self, log: Log, batch: memoryview) -> Pending[Appended]:
        return run(self._append(log, batch))

    def new_producer_id(self) -> Pending[int]:
        allocated = self._broker.producer_ids.allocate()
        return allocated if isinstance(allocated, Pending) else Pending.resolved(allocated)

    def aside(self, work: Callable[[], list[Batch]]) -> Pending[list[Batch]]:
        return self._broker.worker.run(work)

    # internals

    def _target(self, group_id: str, source: str, partition: int) -> Steps[Target | None]:
        broker = self._broker
        group = broker.share_settings(group_id)
        if not group.dead_letter_topic:
            return None
        name = topic_name(group.dead_letter_topic, group_id, source)
        if name == source:
            raise NoDeadLetterTopic(f"{name} is the topic that the records come from: that would never end")
        check_name(name, broker.settings["errors.deadletterqueue.topic.name.prefix"])
        topic = broker.own_resources.find_topic(name, AclOperation.WRITE)
        if topic is None:
            topic = yield from self._created(name)
        values = broker.settings.topic_values(topic.configs)
        if not values["errors.deadletterqueue.group.enable"]:
            raise NoDeadLetterTopic(f"topic {name} has not errors.deadletterqueue.group.enable=true")
        log = broker.own_resources.log_of(topic, partition % topic.partitions)
        return Target(log, group.dead_letter_copy_record)

    def _created(self, name: str) -> Steps[Topic]:
        broker = self._broker
        if not broker.settings["errors.deadletterqueue.auto.create.topics.enable"]:
            raise NoDeadLetterTopic(
                f"there is no topic {name}, and errors.deadletterqueue.auto.create.topics.enable is false"
            )
        try:
            new = check_new_topic(broker, NewTopic(name, configs=_ENABLED))
            return (yield from wait(broker.own_resources.create_topic(new)))
        except ApiError as error:
            topic = broker.own_resources.find_topic(name, AclOperation.WRITE)
            if topic is not None:  # another share partition was quicker
                return topic
            if (
                error.code is ErrorCode.TOPIC_ALREADY_EXISTS
            ):  # it is being made: the records are given up later
                raise
            raise NoDeadLetterTopic(f"topic {name} cannot be made: {error}") from None

    def _append(self, log: Log, batch: memoryview) -> Steps[Appended]:
        now_ms = self._broker.clock()
        try:
            return log.append_as_leader(batch, now_ms)
        except TakesLong:
            pass
        steps = log.append_in_steps(batch, now_ms)
        try:
            work = next(steps)
            while True:
                done = b""
                if work is not None:
                    done = yield from wait(self._broker.worker.run(partial(work, MAX_DECOMPRESSED_BYTES)))
                work = steps.send(done)
        except StopIteration as end:
            return cast("Appended", end.value)
