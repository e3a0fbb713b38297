"""confluent-kafka consumers of one group, polled together on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, Producer

# Clients that outlive the broker would tell so on standard error.
QUIET = {"log_level": 2}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "consumer": {"group.protocol": "consumer"},
    "classic": {
        "group.protocol": "classic",
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 200,
    },
}


class Members:
    def __init__(self, bootstrap: str, group: str) -> None:
        self.group = group
        self.consumed: list[tuple[int, int, bytes]] = []
        """Partition, offset and value of everything that any member has read."""
        self._bootstrap = bootstrap
        self._consumers: dict[str, Consumer] = {}

    @property
    def names(self) -> list[str]:
        return list(self._consumers)

    def start(self, name: str, *topics: str, protocol: str = "consumer", **configs: Any) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self.group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
            "fetch.wait.max.ms": 100,
            **PROTOCOLS[protocol],
            **QUIET,
        }
        settings.update({name.replace("_", "."): value for name, value in configs.items()})
        self._consumers[name] = Consumer(settings)
        self._consumers[name].subscribe(list(topics))

    def stop(self, name: str) -> None:
        self._consumers.pop(name).close()

    def poll(self, *names: str) -> None:
        """Poll these members, or all."""
        for consumer in [self._consumers[name] for name in names] or self._consumers.values():
            for message in consumer.consume(100, 0.005):
                if message.error():
                    raise KafkaException(message.error())
                self.consumed.append((message.partition(), message.offset(), message.value()))

    def owned(self, name: str) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumers[name].assignment()}

    def counts(self) -> list[int]:
        """How many partitions each member owns, in the order they were started."""
        return [len(self.owned(name)) for name in self._consumers]

    def poll_until(
        self, condition: Callable[[], bool], seconds: float = 60, only: Sequence[str] = ()
    ) -> float:
        """Poll all members, or only these, until the condition holds; returns how long that took."""
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > seconds:
                raise AssertionError(
                    f"not within {seconds:g} s; owned: {self.counts()}, read: {len(self.consumed)}"
                )
            self.poll(*only)
        return time.monotonic() - started

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._consumers):
            self.stop(name)


def produce(bootstrap: str, topic: str, partitions: int, values: list[bytes]) -> None:
    """Spread over the partitions in turn."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **QUIET})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
    assert producer.flush(30) == 0


def produce_one_batch(bootstrap: str, topic: str, records: int) -> None:
    """Records 0, 1, 2 … in one batch of the only partition."""
    together = {"linger.ms": 5_000, "batch.num.messages": records, "batch.size": 1_000_000}
    producer = Producer({"bootstrap.servers": bootstrap, **together, **QUIET})
    for number in range(records):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(30) == 0
