"""kill -9 of the broker while a share group rejects: every record becomes one dead letter, none is lost."""

from __future__ import annotations

import random
import threading
from collections import Counter
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import confluent_kafka
import pytest

from tests.dead_letters.share_groups import (
    REJECT,
    configure_group,
    dead_letters,
    kafka_admin,
    produce,
    share_consumer,
)
from tests.support.server_process import ServerProcess, eventually

RECORDS = 3000
KILLS = 6
PARTITIONS = 3


class Rejecting:
    """A share consumer that rejects whatever it gets, until it is told to stop."""

    def __init__(self, bootstrap: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(bootstrap,))
        self._thread.start()

    def _run(self, bootstrap: str) -> None:
        with share_consumer(bootstrap, "orders", **{"max.poll.records": 20}) as consumer:
            while not self._stop.is_set():
                for message in consumer.poll(0.1) or ():
                    # Its lock may have gone with the broker.
                    with suppress(confluent_kafka.KafkaException):
                        if message.error() is None:
                            consumer.acknowledge(message, REJECT)
                with suppress(confluent_kafka.KafkaException):
                    consumer.commit_async()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)


def number_of_letters(server: ServerProcess) -> int:
    settings = {"bootstrap.servers": server.bootstrap, "group.id": "watcher", "log_level": 0}
    with closing(confluent_kafka.Consumer(settings)) as consumer:
        if "dlq.orders" not in consumer.list_topics(timeout=20).topics:
            return 0
        return int(consumer.get_watermark_offsets(confluent_kafka.TopicPartition("dlq.orders", 0))[1])


def are_so_many(server: ServerProcess, letters: int) -> bool:
    return number_of_letters(server) >= letters


@pytest.mark.slow
def test_every_record_becomes_one_dead_letter(tmp_path: Path) -> None:
    chance = random.Random(4)
    settings = [
        "errors.deadletterqueue.auto.create.topics.enable=true",
        "kbroker.group.errors.deadletterqueue.topic.name=dlq.orders",
        "kbroker.group.errors.deadletterqueue.copy.record.enable=true",
    ]
    flags = [word for setting in settings for word in ("--set", setting)]
    with ServerProcess("--data", str(tmp_path), *flags) as server:
        configure_group(server.bootstrap)
        with kafka_admin.AdminClient({"bootstrap.servers": server.bootstrap}) as client:
            wanted = kafka_admin.NewTopic("orders", PARTITIONS)
            for made in client.create_topics([wanted]).values():
                made.result(20)
        rejecting = Rejecting(server.bootstrap)
        try:
            for first in range(0, RECORDS, RECORDS // KILLS):
                produce(server.bootstrap, "orders", range(first, first + RECORDS // KILLS))
                eventually(partial(are_so_many, server, first + 1 + chance.randrange(RECORDS // KILLS)), 60)
                server.kill()
                server.start()
            eventually(partial(are_so_many, server, RECORDS), 120)
        finally:
            rejecting.stop()
        letters = dead_letters(server.bootstrap, "dlq.orders")
    times = Counter((origin.partition, origin.offset) for origin, _, _, _ in letters)
    assert [place for place, count in times.items() if count > 1] == []
    assert sorted(value or b"" for _, _, value, _ in letters) == sorted(b"v%d" % n for n in range(RECORDS))
