"""Take records from a kafka-python consumer with a deadline."""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaConsumer


def take(consumer: KafkaConsumer, count: int, seconds: float = 30) -> list[Any]:
    """The next `count` records, in the order in which they came."""
    taken: list[Any] = []
    deadline = time.monotonic() + seconds
    while len(taken) < count:
        if time.monotonic() > deadline:
            raise AssertionError(f"{len(taken)} of {count} records within {seconds:g} s")
        for records in consumer.poll(timeout_ms=500, max_records=count - len(taken)).values():
            taken += records
    return taken
