"""A broker that everything was asked of once, so that it has something to tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka

from tests.dead_letters.share_groups import (
    ACCEPT,
    GROUP,
    REJECT,
    acknowledge,
    configure_group,
    produce,
    share_consumer,
)
from tests.support.http_client import HttpClient
from tests.support.raw_topics import produce as produce_one
from tests.support.server_process import ServerProcess, eventually

_SETTINGS = {
    "kbroker.group.errors.deadletterqueue.topic.name": "dlq.jobs",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}


class BusyBroker:
    def __init__(self, server: ServerProcess, share_consumer: Any) -> None:
        self.server = server
        self._share_consumer = share_consumer

    def work(self) -> None:
        """Records come, some are accepted and some rejected, and one request fails."""
        bootstrap = self.server.bootstrap
        produce(bootstrap, "orders", range(50))
        produce(bootstrap, "jobs", range(10))
        acknowledge(
            self._share_consumer,
            lambda record: REJECT if record.value() == b"v0" else ACCEPT,
            lambda values: len(values) >= 10,
        )
        with HttpClient(self.server.url) as http:
            assert http.get("/topics/none").status == 404
        with self.server.client() as client:
            assert produce_one(client, "none", 0, b"value") != 0


@contextmanager
def busy_broker(directory: Path) -> Iterator[BusyBroker]:
    """With a transaction and a share session that stay open."""
    settings = [word for name, value in _SETTINGS.items() for word in ("--set", f"{name}={value}")]
    with ServerProcess("--data", str(directory), "--http-port", "0", *settings) as server:
        with HttpClient(server.url) as http:
            for topic in ("orders", "jobs"):
                assert http.post("/topics", {"name": topic, "partitions": 2}).status == 201
        configure_group(server.bootstrap)
        consume(server)
        producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "transactional.id": "t"})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce("orders", b"in a transaction")
        producer.flush(20)
        with share_consumer(server.bootstrap, "jobs") as consumer:
            busy = BusyBroker(server, consumer)
            busy.work()
            yield busy
        producer.abort_transaction(20)


def consume(server: ServerProcess) -> None:
    """A group reads a part, and is behind from then on."""
    produce(server.bootstrap, "orders", range(5))
    settings: dict[str, Any] = {
        "bootstrap.servers": server.bootstrap,
        "group.id": f"{GROUP}-of-orders",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    with closing(confluent_kafka.Consumer(settings)) as consumer:
        consumer.subscribe(["orders"])
        found: list[Any] = []

        def read() -> bool:
            found.extend(consumer.consume(10, 0.2))
            return len(found) >= 5

        eventually(read)
        consumer.commit(asynchronous=False)
