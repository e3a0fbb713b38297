"""The proxy between real clients and kbroker, and between sockets that say anything."""

from __future__ import annotations

import os
import random
import re
import select
import signal
import socket
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from kbroker.testing import KafkaBroker
from tests.wire.proxy_process import proxy


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker({"orders": 2}) as running:
        yield running


def use_kafka_python(bootstrap: str, values: list[bytes]) -> list[bytes]:
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="py")
    for value in values:
        producer.send("orders", value)
    producer.close(timeout=30)
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="py-group",
        auto_offset_reset="earliest",
        client_id="py",
    )
    got: list[bytes] = []
    while len(got) < len(values):
        got += [record.value for of in consumer.poll(1000).values() for record in of]
    consumer.close()
    return got


def use_confluent(bootstrap: str, values: list[bytes]) -> list[bytes]:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "rd"})
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "rd-group",
            "auto.offset.reset": "earliest",
            "client.id": "rd",
        }
    )
    consumer.subscribe(["orders"])
    got: list[bytes] = []
    while len(got) < len(values):
        got += [message.value() for message in consumer.consume(100, 1) if message.error() is None]
    consumer.close()
    return got


@pytest.mark.parametrize(
    ("use", "client"), [(use_kafka_python, "py"), (use_confluent, "rd")], ids=["kafka-python", "confluent"]
)
def test_clients_produce_and_consume_in_a_group(broker: KafkaBroker, use: object, client: str) -> None:
    values = [b"%d" % n for n in range(50)]
    with proxy(broker.bootstrap_servers, "--json") as running:
        assert sorted(use(running.bootstrap, values)) == sorted(values)  # type: ignore[operator]
        running.wait_for("LeaveGroup")
        assert running.stop() == 0
        *frames, last = [each for each in running.objects if "remark" not in each]
    assert not [frame for frame in frames if "problem" in frame]
    produced = [frame for frame in frames if frame["api"] == "Produce" and frame["direction"] == "request"]
    assert sum(frame["records"] for frame in produced) == len(values)
    assert {frame["client_id"] for frame in produced} == {client}
    assert {"Fetch", "JoinGroup", "OffsetCommit", "Metadata"} <= {frame["api"] for frame in frames}
    answered = {
        frame["api"] for frame in frames if frame["direction"] == "response" and "latency_ms" in frame
    }
    assert "Fetch" in answered
    summary = {row["api"]: row for row in last["summary"]}
    assert summary["Produce"]["requests"] == len(produced)
    assert summary["Produce"]["p50_ms"] > 0
    assert len(broker.records("orders")) == len(values)
    for payload in values[20:]:
        assert f'"{payload.decode()}"' not in str([frame.get("fields") for frame in frames])


def test_clients_stay_on_the_proxy_unless_told_otherwise(broker: KafkaBroker) -> None:
    """The broker's own address is what Metadata tells: a client that follows it goes past the proxy."""
    with proxy(broker.bootstrap_servers) as running:
        use_kafka_python(running.bootstrap, [b"x"])
        running.wait_for("→ Produce")
        running.wait_for("→ LeaveGroup")
    with proxy(broker.bootstrap_servers, "--no-rewrite") as running:
        use_confluent(running.bootstrap, [b"x"])
        running.stop()
        assert "→ Metadata" in running.output
        assert "→ Produce" not in running.output


def test_each_address_that_the_broker_tells_gets_a_port_of_the_proxy(broker: KafkaBroker) -> None:
    """The upstream is named otherwise than the broker names itself."""
    with proxy(f"localhost:{broker.port}") as running:
        assert use_kafka_python(running.bootstrap, [b"x"]) == [b"x"]
        running.wait_for("→ LeaveGroup")
        match = re.search(rf"broker {broker.bootstrap_servers} is reached through (\S+)", running.output)
        assert match is not None
        assert match[1] not in (running.bootstrap, broker.bootstrap_servers)
        assert f"connects to {broker.bootstrap_servers}" in running.output


def test_clients_are_told_another_host_on_request(broker: KafkaBroker) -> None:
    with proxy(broker.bootstrap_servers, "--advertise", "localhost") as running:
        consumer = KafkaConsumer(bootstrap_servers=running.bootstrap)
        consumer.topics()
        (node,) = consumer._client.cluster.brokers()
        consumer.close()
        assert f"{node.host}:{node.port}" == running.bootstrap.replace("127.0.0.1", "localhost")


def test_ctrl_c_ends_it_with_a_summary(broker: KafkaBroker) -> None:
    with proxy(broker.bootstrap_servers, "--summary-only") as running:
        use_kafka_python(running.bootstrap, [b"x"])
        assert running.stop(signal.SIGINT) == 0
        heading, *rows = running.output.strip().splitlines()
    assert heading.split()[:4] == ["API", "REQUESTS", "RESPONSES", "ERRORS"]
    assert {"Produce", "Fetch", "JoinGroup"} <= {row.split()[0] for row in rows}


def test_only_what_is_asked_for_is_printed(broker: KafkaBroker) -> None:
    with proxy(broker.bootstrap_servers, "--api", "produce,Metadata", "--payloads") as running:
        use_kafka_python(running.bootstrap, [b"a value"])
        running.wait_for('"a value"')
        running.stop()
        frames = [line for line in running.output.splitlines() if "→" in line or "←" in line]
    assert {line.split()[3] for line in frames} == {"Produce", "Metadata"}
    with proxy(broker.bootstrap_servers, "--errors-only") as running:
        use_kafka_python(running.bootstrap, [b"x"])
        running.wait_for("MEMBER_ID_REQUIRED")
        running.stop()
        frames = [line for line in running.output.splitlines() if "→" in line or "←" in line]
    assert {line.split()[3] for line in frames} == {"JoinGroup"}


class Upstream:
    """A server that sends `answer` to whoever connects, and keeps what it is sent."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.received = b""
        self.held_up = threading.Event()  # nobody took any of the answer for a while
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        served, _ = self._listener.accept()
        with served:
            sender = threading.Thread(target=self._send, args=(served,))
            sender.start()
            parts = []
            while part := served.recv(1 << 16):
                parts.append(part)
            sender.join()
        self.received = b"".join(parts)

    def _send(self, served: socket.socket) -> None:
        rest = memoryview(self._answer)
        while rest:
            if not select.select([], [served], [], 1)[1]:
                self.held_up.set()
                continue
            rest = rest[served.send(rest[: 1 << 16]) :]
        served.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(30)
        self._listener.close()


@pytest.mark.parametrize("kind", ["random", "frames of zeros", "one large frame"])
def test_megabytes_of_anything_arrive_as_they_were_sent(kind: str) -> None:
    size = 8 << 20
    made = random.Random(7).randbytes(size)
    if kind == "frames of zeros":
        made = bytes(size)
    elif kind == "one large frame":
        made = (size - 4).to_bytes(4, "big") + b"\0\0\0\x09" + made[8:]
    with Upstream(made[::-1] if kind == "random" else made) as upstream, proxy(upstream.address) as running:
        host, _, port = running.bootstrap.partition(":")
        with socket.create_connection((host, int(port)), 30) as client:
            sender = threading.Thread(target=lambda: (client.sendall(made), client.shutdown(socket.SHUT_WR)))
            sender.start()
            got = []
            while part := client.recv(1 << 16):
                got.append(part)
            sender.join()
        assert b"".join(got) == (made[::-1] if kind == "random" else made)
        upstream._thread.join(30)
        assert upstream.received == made


def memory_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_client_that_does_not_read_holds_up_the_broker_and_not_the_memory() -> None:
    size = 64 << 20
    with Upstream(bytes(size)) as upstream, proxy(upstream.address) as running:
        host, _, port = running.bootstrap.partition(":")
        with socket.create_connection((host, int(port)), 30) as client:
            taken = len(client.recv(1 << 16))
            before = memory_bytes(running.pid)
            assert upstream.held_up.wait(60)
            assert memory_bytes(running.pid) - before < size // 4
            while part := client.recv(1 << 16):
                taken += len(part)
            client.shutdown(socket.SHUT_WR)
        assert taken == size


def test_a_broker_that_is_not_there_is_told_and_the_client_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    with proxy(address) as running:
        host, _, port = running.bootstrap.partition(":")
        with socket.create_connection((host, int(port)), 30) as client:
            assert client.recv(1) == b""
        running.wait_for(f"{address} cannot be reached")
