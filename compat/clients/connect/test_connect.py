"""A Kafka Connect worker in distributed mode, with a file source and a file sink."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from compat.clients.connect.pipe import Pipe
from compat.clients.connect.worker import ConnectWorker
from compat.harness.connection import Connection
from compat.harness.waiting import eventually

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def shared_worker(kafka_server, unique, tmp_path_factory) -> Iterator[ConnectWorker]:
    worker = ConnectWorker(kafka_server.bootstrap, unique("connect"), tmp_path_factory.mktemp("worker"))
    try:
        yield worker
    finally:
        worker.stop()


@pytest.fixture
def worker(shared_worker: ConnectWorker) -> ConnectWorker:
    """One that runs; a test may stop and start it."""
    if not shared_worker.is_running:
        shared_worker.start()
    return shared_worker


def groups(bootstrap: str) -> dict[str, tuple[str, str]]:
    """Protocol type and state of every group."""
    with Connection(bootstrap) as connection:
        listed = connection.ask("ListGroups", 5, StatesFilter=[], TypesFilter=[])["Groups"]
    return {each["GroupId"]: (each["ProtocolType"], each["GroupState"]) for each in listed}


def cleanup_policies(bootstrap: str, topics: Iterable[str]) -> set[str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    futures = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in topics])
    return {future.result(30)["cleanup.policy"].value for future in futures.values()}


def test_lines_go_from_file_to_file_and_a_worker_that_restarts_goes_on_where_it_stopped(
    kafka_server, worker: ConnectWorker, topic: str, tmp_path: Path
) -> None:
    pipe = Pipe(worker, topic, tmp_path)
    lines = [f"line {number}" for number in range(100)]
    pipe.write(lines)
    pipe.wait_for(lines)
    listed = groups(kafka_server.bootstrap)
    assert listed[worker.group] == ("connect", "Stable")
    assert listed[pipe.sink_group] == ("consumer", "Stable")
    assert cleanup_policies(kafka_server.bootstrap, worker.topics.values()) == {"compact"}

    worker.stop()
    assert groups(kafka_server.bootstrap)[pipe.sink_group] == ("consumer", "Empty")
    more = [f"line {number}" for number in range(100, 150)]
    pipe.write(more)
    worker.start()
    pipe.wait_for(lines + more)

    (stored,) = eventually(
        lambda: worker.get(f"/connectors/{pipe.source}/offsets")["offsets"],
        lambda offsets: offsets[0]["offset"] == {"position": pipe.source_file.stat().st_size},
    )
    assert stored["partition"] == {"filename": str(pipe.source_file)}
    worker.put(f"/connectors/{pipe.sink}/stop")
    worker.wait_for_state(pipe.sink, "STOPPED")
    worker.delete(f"/connectors/{pipe.sink}/offsets")
    assert pipe.sink_group not in groups(kafka_server.bootstrap)
    worker.put(f"/connectors/{pipe.sink}/resume")
    pipe.wait_for((lines + more) * 2)
    worker.wait_for_state(pipe.sink, "RUNNING")
    pipe.delete(worker)


def test_workers_share_the_connectors_and_take_over_from_each_other(
    kafka_server, worker: ConnectWorker, topic: str, tmp_path: Path
) -> None:
    pipe = Pipe(worker, topic, tmp_path)
    pipe.write(["one"])
    pipe.wait_for(["one"])
    (tmp_path / "second").mkdir()
    with ConnectWorker(kafka_server.bootstrap, worker.group, tmp_path / "second") as second:

        def workers() -> set[str]:
            """Those that run a connector or a task."""
            return {part["worker_id"] for name in (pipe.source, pipe.sink) for part in second.status(name)}

        both = eventually(workers, lambda found: len(found) == 2, seconds=60)
        pipe.write(["two"])
        pipe.wait_for(["one", "two"])
        worker.stop()
        assert eventually(workers, lambda found: len(found) == 1, seconds=60) < both
        pipe.write(["three"])
        pipe.wait_for(["one", "two", "three"])


def test_dead_letters_of_a_sink_are_understood_and_sent_back(
    kafka_server, worker: ConnectWorker, topic: str, tmp_path: Path
) -> None:
    def dlq(*arguments: str) -> str:
        command = [sys.executable, "-m", "kbroker", "dlq", *arguments, "-b", kafka_server.bootstrap]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    producer = Producer({"bootstrap.servers": kafka_server.bootstrap})
    for value in ('"good"', "no JSON", '"good too"'):
        producer.produce(topic, value, key="k", headers=[("own", b"1")])
    producer.flush(30)
    sink = f"{topic}-sink"
    settings = {
        "connector.class": "FileStreamSink",
        "topics": topic,
        "file": str(tmp_path / "sink"),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"dead-{topic}",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    worker.put(f"/connectors/{sink}/config", settings)
    listed = eventually(lambda: dlq("list"), lambda shown: f"dead-{topic}" in shown, seconds=60)
    assert "Converting byte[] to Kafka Connect data failed" in listed
    line = json.loads(dlq("show", f"dead-{topic}", "--group", sink, "--json"))
    assert {name: line["origin"][name] for name in ("kind", "topic", "partition", "offset")} == {
        "kind": "connect",
        "topic": topic,
        "partition": 0,
        "offset": 1,
    }
    assert (line["key"], line["value"], line["headers"]) == ("k", "no JSON", [["own", "1"]])
    assert dlq("replay", f"dead-{topic}") == f"1 record sent to {topic}\n"
    worker.delete(f"/connectors/{sink}")
