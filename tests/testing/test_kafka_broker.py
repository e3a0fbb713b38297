"""kbroker.testing as its users use it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kbroker.testing import BrokerFailed, KafkaBroker
from kbroker.testing.control_client import ControlError
from tests.support.inner_pytest import PYTEST
from tests.support.server_process import eventually


def send(broker: KafkaBroker, topic: str, value: bytes) -> None:
    assert outcome(broker, topic, value) == "acknowledged"


def outcome(broker: KafkaBroker, topic: str, value: bytes) -> str:
    """What became of one record: acknowledged, or the name of the error."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 20_000})
    outcomes: list[str] = []
    producer.produce(
        topic, value, on_delivery=lambda error, _: outcomes.append(error.name() if error else "acknowledged")
    )
    producer.flush(30)
    return outcomes[0]


def test_topics_are_there_and_records_can_be_looked_at() -> None:
    with KafkaBroker(topics={"orders": 3}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        assert len(admin.list_topics(timeout=20).topics["orders"].partitions) == 3
        send(broker, "orders", b"one")
        (record,) = broker.records("orders")
        assert record.value == b"one"


def test_brokers_stand_side_by_side() -> None:
    with KafkaBroker(["a"]) as one, KafkaBroker(["b"]) as two:
        assert one.port != two.port
        send(one, "a", b"only in one")
        assert two.records("b") == []
        with pytest.raises(ControlError, match="no topic a"):
            two.records("a")


def test_an_injected_error_is_retried_by_the_client() -> None:
    with KafkaBroker(["t"]) as broker:
        broker.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
        send(broker, "t", b"after two tries")
        assert [record.value for record in broker.records("t")] == [b"after two tries"]
        assert sum(request.api == "Produce" for request in broker.requests) == 3


def test_an_error_without_a_number_of_times_stays_until_healed() -> None:
    with KafkaBroker(["t"]) as broker:
        broker.fail(api="Produce", error="TOPIC_AUTHORIZATION_FAILED", times=None)
        assert [outcome(broker, "t", b"") for _ in range(2)] == ["TOPIC_AUTHORIZATION_FAILED"] * 2
        broker.heal()
        send(broker, "t", b"healed")


def test_an_error_that_is_not_retriable_reaches_the_caller() -> None:
    with KafkaBroker(["t"]) as broker:
        broker.fail(api="Produce", error="TOPIC_AUTHORIZATION_FAILED")
        assert outcome(broker, "t", b"refused") == "TOPIC_AUTHORIZATION_FAILED"


def test_a_delayed_answer_times_out_at_the_client() -> None:
    with KafkaBroker(["t"]) as broker:
        broker.delay(api="Metadata", ms=60_000)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=0.5)
        broker.heal()
        broker.drop_connections()

        def is_listed() -> bool:
            try:
                return "t" in admin.list_topics(timeout=20).topics
            except KafkaException:  # the question went over a connection that was just dropped
                return False

        eventually(is_listed)


def test_a_paused_broker_answers_after_it_resumes() -> None:
    with KafkaBroker(["t"]) as broker:
        broker.pause()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=0.3)
        broker.resume()
        assert "t" in admin.list_topics(timeout=20).topics


def test_requests_tell_api_version_and_client() -> None:
    with KafkaBroker() as broker:
        AdminClient({"bootstrap.servers": broker.bootstrap_servers, "client.id": "me"}).list_topics(
            timeout=20
        )
        apis = {request.api for request in broker.requests if request.client_id == "me"}
        assert {"ApiVersions", "Metadata"} <= apis
        broker.forget_requests()
        assert broker.requests == []


def test_a_restart_keeps_address_and_data(tmp_path: Path) -> None:
    with KafkaBroker(["t"], data=tmp_path / "data") as broker:
        send(broker, "t", b"kept")
        address = broker.bootstrap_servers
        broker.kill()
        broker.start()
        broker.restart()
        assert broker.bootstrap_servers == address
        assert [record.value for record in broker.records("t")] == [b"kept"]


def test_wrong_settings_are_told() -> None:
    with pytest.raises(BrokerFailed, match=r"num\.partitions"):
        KafkaBroker(configs={"num.partition": "3"}).start()


def test_unknown_faults_are_told() -> None:
    with KafkaBroker() as broker:
        with pytest.raises(ControlError, match="NO_SUCH_ERROR"):
            broker.fail(error="NO_SUCH_ERROR")
        with pytest.raises(ControlError, match="Prodcue"):
            broker.fail(api="Prodcue")


def test_the_broker_ends_with_its_parent_even_when_that_is_killed() -> None:
    script = (
        "from kbroker.testing import KafkaBroker; import sys, time\n"
        "broker = KafkaBroker(); broker.start(); print(broker.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
    eventually(lambda: not _alive(pid))


def test_in_the_running_event_loop() -> None:
    async def main() -> list[dict[str, object]]:
        async with KafkaBroker(["t"], in_process=True) as broker:
            await asyncio.to_thread(send, broker, "t", b"from a thread")
            records: list[dict[str, object]] = await broker.control("records", topic="t")
            return records

    (record,) = asyncio.run(main())
    assert record["offset"] == 0


def test_as_an_asynchronous_context() -> None:
    async def main() -> None:
        async with KafkaBroker(["t"]) as broker:
            await asyncio.to_thread(send, broker, "t", b"x")
            assert len(broker.records("t")) == 1

    asyncio.run(main())


def test_the_fixtures_need_no_configuration(kafka_bootstrap: str, kafka_topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    producer.produce(kafka_topic, b"hello")
    assert producer.flush(20) == 0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def test_the_fixtures_give_each_xdist_worker_a_broker_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os, pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(8))\n"
        "def test_alone(kafka_broker, kafka_bootstrap, kafka_topic, number):\n"
        "    assert kafka_broker.records(kafka_topic) == []\n"
        "    worker = os.environ['PYTEST_XDIST_WORKER']\n"
        "    pathlib.Path(__file__).with_name(f'{worker}-{kafka_bootstrap}').touch()\n"
    )
    done = subprocess.run(
        [*PYTEST, "-n", "2", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    brokers = sorted(path.name for path in tmp_path.glob("gw*"))
    assert len(brokers) == 2
    assert brokers[0].partition("-")[2] != brokers[1].partition("-")[2]


def test_a_broker_costs_little_before_it_is_ready() -> None:
    """In CPU time, which does not depend on what else the machine does: ready in under 0.4 s when idle."""
    with KafkaBroker() as broker:
        ticks = sum(map(int, Path(f"/proc/{broker.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        assert ticks / os.sysconf("SC_CLK_TCK") < 0.4


def test_healing_lets_delayed_requests_go_on() -> None:
    with KafkaBroker(["t"]) as broker:
        broker.delay(api="Produce", ms=600_000)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", b"late")
        producer.poll(0)
        eventually(lambda: any(request.api == "Produce" for request in broker.requests))
        broker.heal()
        assert producer.flush(30) == 0
        assert [request.api for request in broker.requests].count("Produce") == 1
