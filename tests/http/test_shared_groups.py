"""Groups whose members are consumers by HTTP and Kafka's own clients, of both protocols: within the group
every record is delivered once, while members come and go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, KafkaError
from kafka import KafkaConsumer, KafkaProducer

from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually

PARTITIONS = 6
_numbers = iter(range(1, 1_000_000))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """On disk: there heartbeats and commits are answered later, when they are stored."""
    data = str(tmp_path_factory.mktemp("data"))
    with ServerProcess(
        "--data", data, "--http-port", "0", "--set", "group.initial.rebalance.delay.ms=0"
    ) as process:
        yield process


class Member(Protocol):
    def poll(self) -> list[str]:
        """What it got, committed by the next poll or its end."""

    def close(self) -> None: ...


class HttpMember:
    """Commits what it got before it polls again."""

    def __init__(self, server: ServerProcess, topic: str, group: str) -> None:
        self._http = HttpClient(server.url)
        given = {"topics": [topic], "autoOffsetReset": "earliest", "autoCommit": False}
        answer = self._http.post(f"/groups/{group}/consumers", given)
        assert answer.status == 201, answer
        self.path = answer.headers["location"]

    def poll(self) -> list[str]:
        answer = self._http.get(f"{self.path}/records?maxWaitMs=200&maxRecords=7&value=text")
        assert answer.status == 200, answer
        records = answer.json["records"]
        if records:
            committed = self._http.post(f"{self.path}/commit", {})
            assert committed.json == {"refused": []}, committed
        return [record["valueText"] for record in records]

    def close(self) -> None:
        assert self._http.ask("DELETE", self.path).status == 204
        self._http.close()


class RestProxyMember:
    """Commits by itself."""

    def __init__(self, server: ServerProcess, topic: str, group: str) -> None:
        self._http = HttpClient(server.url)
        v2 = {"Content-Type": "application/vnd.kafka.v2+json"}
        given = '{"format": "json", "auto.offset.reset": "earliest"}'
        made = self._http.ask("POST", f"/consumers/{group}", given, v2)
        assert made.status == 200, made
        self.path = f"/consumers/{group}/instances/{made.json['instance_id']}"
        subscribed = self._http.ask("POST", f"{self.path}/subscription", f'{{"topics": ["{topic}"]}}', v2)
        assert subscribed.status == 204, subscribed

    def poll(self) -> list[str]:
        accept = {"Accept": "application/vnd.kafka.json.v2+json"}
        answer = self._http.ask("GET", f"{self.path}/records?timeout=200", None, accept)
        assert answer.status == 200, answer
        return [str(record["value"]) for record in answer.json]

    def close(self) -> None:
        assert self._http.ask("DELETE", self.path).status == 204
        self._http.close()


class LibrdkafkaMember:
    def __init__(self, server: ServerProcess, topic: str, group: str, protocol: str) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": server.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if protocol == "classic":
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])

    def poll(self) -> list[str]:
        message = self._consumer.poll(0.2)
        if message is None:
            return []
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            return []
        self._consumer.commit(message, asynchronous=False)
        return [message.value().decode()]

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonMember:
    def __init__(self, server: ServerProcess, topic: str, group: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=server.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
            session_timeout_ms=6000,
            max_poll_records=5,
        )

    def poll(self) -> list[str]:
        polled = self._consumer.poll(200)
        if polled:
            self._consumer.commit()
        return [record.value.decode() for records in polled.values() for record in records]

    def close(self) -> None:
        self._consumer.close()


def made(kind: str, server: ServerProcess, topic: str, group: str) -> Member:
    if kind == "http":
        return HttpMember(server, topic, group)
    if kind == "rest proxy":
        return RestProxyMember(server, topic, group)
    if kind == "kafka-python":
        return KafkaPythonMember(server, topic, group)
    return LibrdkafkaMember(server, topic, group, kind)


class Polling:
    """Each member polls in a thread of its own."""

    def __init__(self) -> None:
        self.delivered: dict[str, list[str]] = {}
        self.failures: list[BaseException] = []
        self._threads: dict[str, tuple[threading.Thread, threading.Event]] = {}

    def start(self, name: str, member: Member) -> None:
        ended = threading.Event()
        taken = self.delivered.setdefault(name, [])

        def run() -> None:
            try:
                while not ended.is_set():
                    taken.extend(member.poll())
                member.close()
            except BaseException as error:
                self.failures.append(error)

        thread = threading.Thread(target=run)
        self._threads[name] = (thread, ended)
        thread.start()

    def stop(self, name: str) -> None:
        thread, ended = self._threads.pop(name)
        ended.set()
        thread.join(60)
        assert not thread.is_alive()

    def stop_all(self) -> None:
        for _, ended in self._threads.values():
            ended.set()
        for name in list(self._threads):
            self.stop(name)

    @property
    def all(self) -> list[str]:
        return [value for taken in self.delivered.values() for value in list(taken)]


@pytest.mark.parametrize("door", ["http", "rest proxy"])
@pytest.mark.parametrize("other", ["consumer", "classic", "kafka-python"])
def test_every_record_is_delivered_once_within_a_group_of_http_and_kafka_consumers(
    server: ServerProcess, door: str, other: str
) -> None:
    topic, group = (f"shared-{what}-{next(_numbers)}" for what in ("topic", "group"))
    polling = Polling()
    sent = 0

    with (
        HttpClient(server.url) as http,
        closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer,
    ):
        assert http.post("/topics", {"name": topic, "partitions": PARTITIONS}).status == 201

        def send(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                producer.send(topic, str(sent).encode(), partition=sent % PARTITIONS)
                sent += 1
            producer.flush(20)

        def all_got() -> bool:
            assert not polling.failures, polling.failures
            return len(polling.all) >= sent

        def shared(*names: str) -> bool:
            """Each of them has got something of what came since."""
            send(PARTITIONS)
            assert not polling.failures, polling.failures
            return all(polling.delivered[name][before[name] :] for name in names)

        def mark() -> dict[str, int]:
            return {name: len(taken) for name, taken in polling.delivered.items()}

        try:
            polling.start("kafka", made(other, server, topic, group))
            send(50)
            eventually(all_got, 40)
            polling.start("door", made(door, server, topic, group))
            before = mark()
            eventually(lambda: shared("kafka", "door"), 40)
            polling.start("door 2", made(door, server, topic, group))
            before = mark()
            eventually(lambda: shared("kafka", "door", "door 2"), 40)
            polling.stop("door")
            before = mark()
            eventually(lambda: shared("kafka", "door 2"), 40)
            polling.stop("kafka")
            send(50)
            eventually(all_got, 40)
            polling.start("kafka 2", made(other, server, topic, group))
            before = mark()
            eventually(lambda: shared("kafka 2", "door 2"), 40)
            polling.stop("door 2")
            send(50)
            eventually(all_got, 40)
        finally:
            polling.stop_all()
        assert not polling.failures, polling.failures
        assert sorted(map(int, polling.all)) == list(range(sent))
        lag = http.get(f"/groups/{group}/lag").json
        assert (lag["lag"], lag["state"]) == (0, "Empty")
