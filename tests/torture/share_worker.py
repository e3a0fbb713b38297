"""A member of a share group: a process of its own, to be killed. It tells what it got and acknowledged.

    D partition offset    the record was delivered to it
    A partition offset    the broker has confirmed that it accepted the record

SIGTERM ends it.
"""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Mapping

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer

TOPIC = "torture"
GROUP = "workers"
_POLL_SECONDS = 0.2
_RELEASED = 0.1  # of all deliveries


class Worker:
    def __init__(self, bootstrap: str, seed: int) -> None:
        self._chance = random.Random(seed)
        self._over = False
        signal.signal(signal.SIGTERM, self._stop)
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "share.acknowledgement.mode": "explicit",
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 10,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe([TOPIC])
        while not self._over:
            try:
                self._step()
            except KafkaException as failure:
                print("E", failure, file=sys.stderr)  # noqa: T201
        self._consumer.close()

    def _step(self) -> None:
        accepted: list[tuple[int, int]] = []
        for message in self._consumer.poll(_POLL_SECONDS):
            if message.error() is not None:
                continue
            self._delivered(message, accepted)
        if accepted:
            self._confirmed(accepted, self._consumer.commit_sync(10))

    def _delivered(self, message: Message, accepted: list[tuple[int, int]]) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        print("D", partition, offset)  # noqa: T201
        if self._chance.random() < _RELEASED:
            self._consumer.acknowledge(message, AcknowledgeType.RELEASE)
        else:
            self._consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            accepted.append((partition, offset))

    def _confirmed(self, accepted: list[tuple[int, int]], results: Mapping[object, object]) -> None:
        stored = {getattr(each, "partition", -1) for each, error in results.items() if error is None}
        for partition, offset in accepted:
            if partition in stored:
                print("A", partition, offset)  # noqa: T201
        sys.stdout.flush()

    def _stop(self, *_: object) -> None:
        self._over = True


if __name__ == "__main__":
    Worker(sys.argv[1], int(sys.argv[2])).run()
