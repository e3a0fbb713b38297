"""Produce with delivery reports and consume with a deadline."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer


def deliver(producer: Producer, topic: str, **message: Any) -> Message:
    """Produce one message and wait for its report; a delivery error is raised."""
    reports: list[tuple[Any, Message]] = []
    producer.produce(topic, on_delivery=lambda error, report: reports.append((error, report)), **message)
    if producer.flush(30):
        raise AssertionError("no delivery report within 30 s")
    ((error, report),) = reports
    if error is not None:
        raise KafkaException(error)
    return report


def take(consumer: Consumer, count: int, seconds: float = 30) -> list[Message]:
    """The next `count` messages; a consumer error is raised."""
    taken: list[Message] = []
    deadline = time.monotonic() + seconds
    while len(taken) < count:
        if time.monotonic() > deadline:
            raise AssertionError(f"{len(taken)} of {count} messages within {seconds:g} s")
        message = consumer.poll(0.5)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        taken.append(message)
    return taken
