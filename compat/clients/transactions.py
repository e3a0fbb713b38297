"""Transactions of a real client, as its users write them: the tests that every client's folder runs.

`Fenced` is what each client raises when another producer has taken over its transactional id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Protocol

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.harness.brokers import Server
from compat.harness.waiting import eventually

PARTITIONS = 3
SECONDS = 30


class Fenced(Exception):
    """Another producer has this transactional id."""


class Client(Protocol):
    """One producer with a transactional id (after `init`), and a way to read."""

    def __init__(self, bootstrap: str) -> None: ...

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: str) -> None:
        """Returns when it is acknowledged."""
        ...

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        """All values up to the end that this isolation level has."""
        ...

    def close(self) -> None: ...


def write_and_commit(client: Client, topic: str, value: str) -> None:
    client.send(topic, 0, value)
    client.commit()


class Transactions:
    """A test class of a client's folder derives from it and names the client."""

    client: ClassVar[type[Client]]

    @pytest.fixture
    def new_client(self, kafka_server: Server) -> Iterator[Callable[[], Client]]:
        """Another client of the kind under test; all are closed at the end."""
        started: list[Client] = []

        def start() -> Client:
            started.append(self.client(kafka_server.bootstrap))
            return started[-1]

        yield start
        for client in started:
            client.close()

    @pytest.fixture
    def topic_of_3(self, kafka_server: Server, topic: str) -> str:
        admin = AdminClient({"bootstrap.servers": kafka_server.bootstrap})
        (created,) = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
        created.result(30)
        return topic

    def test_committed_shows_and_aborted_does_not(self, new_client, topic_of_3: str, unique) -> None:
        client = new_client()
        client.init(unique("txn"))
        expected: list[str] = []
        for number in range(6):
            commit = number % 3 != 1
            client.begin()
            for partition in range(PARTITIONS):
                value = f"{'committed' if commit else 'aborted'}-{number}-{partition}"
                client.send(topic_of_3, partition, value)
                expected += [value] if commit else []
            if commit:
                client.commit()
            else:
                client.abort()
        eventually(
            lambda: sorted(client.read(topic_of_3, PARTITIONS, committed=True)),
            lambda found: found == sorted(expected),
        )
        assert len(client.read(topic_of_3, PARTITIONS, committed=False)) == 6 * PARTITIONS

    def test_an_open_transaction_hides_what_comes_after_it(self, new_client, topic_of_3: str, unique) -> None:
        first, second = new_client(), new_client()
        first.init(unique("txn"))
        second.init(unique("txn"))
        first.begin()
        first.send(topic_of_3, 0, "open")
        second.begin()
        second.send(topic_of_3, 0, "later")
        second.commit()
        assert second.read(topic_of_3, 1, committed=True) == []
        assert second.read(topic_of_3, 1, committed=False) == ["open", "later"]
        first.commit()
        eventually(
            lambda: second.read(topic_of_3, 1, committed=True), lambda found: found == ["open", "later"]
        )

    def test_a_new_producer_fences_the_old_one(self, new_client, topic_of_3: str, unique) -> None:
        transactional_id = unique("txn")
        zombie = new_client()
        zombie.init(transactional_id)
        zombie.begin()
        zombie.send(topic_of_3, 0, "zombie")
        successor = new_client()
        successor.init(transactional_id)
        successor.begin()
        write_and_commit(successor, topic_of_3, "successor")
        # Only now: kafka-python's zombie recovers by itself, some time later, and fences its successor.
        with pytest.raises(Fenced):
            write_and_commit(zombie, topic_of_3, "late")
        eventually(
            lambda: successor.read(topic_of_3, 1, committed=True), lambda found: found == ["successor"]
        )

    def test_offsets_and_outputs_go_together(
        self, new_client, kafka_server: Server, topic_of_3: str, unique
    ) -> None:
        """Consume, transform, produce: the offset that is committed is that of what shows."""
        group = unique("group")
        client = new_client()
        client.init(unique("txn"))
        for number in range(4):
            client.begin()
            client.send(topic_of_3, 0, f"output-{number}")
            client.offset(group, topic_of_3, 1, number + 1)
            if number % 2:
                client.abort()
            else:
                client.commit()
        consumer = Consumer({"bootstrap.servers": kafka_server.bootstrap, "group.id": group})
        try:
            eventually(
                lambda: consumer.committed([TopicPartition(topic_of_3, 1)], 30)[0].offset,
                lambda offset: offset == 3,
            )
        finally:
            consumer.close()
        eventually(
            lambda: client.read(topic_of_3, 1, committed=True),
            lambda found: found == ["output-0", "output-2"],
        )

    def test_many_small_transactions(self, new_client, topic_of_3: str, unique) -> None:
        client = new_client()
        client.init(unique("txn"))
        for number in range(30):
            client.begin()
            client.send(topic_of_3, number % PARTITIONS, str(number))
            client.commit()
        eventually(
            lambda: sorted(map(int, client.read(topic_of_3, PARTITIONS, committed=True))),
            lambda found: found == list(range(30)),
        )
