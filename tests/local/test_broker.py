"""A broker in this process: opened, asked from where it may be, served to others, closed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from kbroker.local import ClosedError, KafkaError, LocalBroker, OpenError, WrongLoopError
from kbroker.local.errors import TopicAuthorizationFailed
from tests.local.scenario import eventually, scenario
from tests.support.server_process import ServerProcess


@scenario
async def test_what_was_published_is_there_when_the_directory_is_opened_again(tmp_path: Path) -> None:
    async with LocalBroker(data=tmp_path / "data") as broker:
        cluster_id = broker.cluster_id
        await broker.publish("orders", b"kept", key=b"k")
    async with LocalBroker(data=tmp_path / "data") as broker:
        assert broker.cluster_id == cluster_id
        (record,) = (await broker.fetch("orders")).records
        assert (record.key, record.value) == (b"k", b"kept")


@scenario
async def test_the_same_broker_can_be_opened_again(tmp_path: Path) -> None:
    broker = LocalBroker(data=tmp_path / "data", configs={"num.partitions": 2})
    for _ in range(2):
        async with broker:
            await broker.create_topic("orders", if_not_exists=True)
            assert (await broker.describe_topic("orders")).partitions == 2


@scenario
async def test_in_memory_nothing_is_left() -> None:
    async with LocalBroker() as broker:
        await broker.publish("orders", b"x")
    async with LocalBroker() as broker:
        assert await broker.topics() == []


@scenario
async def test_a_directory_is_held_by_one_broker_in_this_process_or_another(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with LocalBroker(data=data) as broker:
        with pytest.raises(OpenError, match=str(data)):
            await LocalBroker(data=data).open()
        await broker.publish("orders", b"it goes on")
    with ServerProcess("--data", str(data)) as server, pytest.raises(OpenError, match=f"{server.pid}"):
        await LocalBroker(data=data).open()
    async with LocalBroker(data=data) as broker:
        assert [record.value for record in (await broker.fetch("orders")).records] == [b"it goes on"]


@pytest.mark.parametrize(
    ("configs", "problem"),
    [
        ({"no.such.thing": 1}, "^unknown setting no.such.thing"),
        ({"num.partitions": "many"}, "^num.partitions: "),
        ({"log.dirs": "/tmp/x"}, "data=…"),
        ({"listeners": "nonsense"}, "^listeners: "),
    ],
)
def test_configs_that_cannot_be_are_refused_when_it_is_made(configs: dict[str, str], problem: str) -> None:
    with pytest.raises(OpenError, match=problem):
        LocalBroker(configs=configs)


@scenario
async def test_a_port_that_is_taken_leaves_the_directory_free(tmp_path: Path) -> None:
    async with LocalBroker(port=0) as other:
        port = int(other.bootstrap_servers.rpartition(":")[2])
        with pytest.raises(OpenError, match="the port is in use"):
            await LocalBroker(data=tmp_path / "data", port=port).open()
    async with LocalBroker(data=tmp_path / "data") as broker:
        assert await broker.topics() == []


@scenario
async def test_a_broker_that_is_not_open_says_so() -> None:
    broker = LocalBroker()
    with pytest.raises(ClosedError, match="async with"):
        await broker.publish("orders", b"x")
    with pytest.raises(ClosedError, match="async with"):
        await anext(broker.subscribe("orders"))
    async with broker:
        with pytest.raises(RuntimeError, match="open already"):
            await broker.open()
        subscription = broker.subscribe("orders")
        await broker.publish("orders", b"x")
        await anext(subscription)
    for call in (broker.publish("orders", b"x"), broker.lag("g"), anext(subscription)):
        with pytest.raises(ClosedError, match="the broker is closed"):
            await call
    await broker.close()
    await subscription.close()


@scenario
async def test_who_waits_when_it_is_closed_hears_of_it() -> None:
    async with LocalBroker() as broker:
        await broker.create_topic("orders")
        waiting = [
            asyncio.ensure_future(broker.fetch("orders", max_wait_ms=60_000)),
            asyncio.ensure_future(anext(broker.subscribe("orders"))),
            asyncio.ensure_future(anext(broker.subscribe("orders", group="g"))),
            asyncio.ensure_future(anext(broker.subscribe("not there"))),
        ]
        await eventually(lambda: len(broker._calls._waiting) == 4)
    for each in waiting:
        with pytest.raises(ClosedError):
            await each


@scenario
async def test_a_close_that_is_cancelled_closes_nevertheless(tmp_path: Path) -> None:
    broker = LocalBroker(data=tmp_path / "data")
    await broker.open()
    await broker.publish("orders", b"x")
    closing = asyncio.ensure_future(broker.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    async with LocalBroker(data=tmp_path / "data") as again:
        assert len((await again.fetch("orders")).records) == 1


@scenario
async def test_a_call_from_another_thread_or_loop_is_refused_and_harms_nothing() -> None:
    async with LocalBroker() as broker:
        await broker.publish("orders", b"0")
        subscription = broker.subscribe("orders")
        failures: list[BaseException] = []

        def elsewhere() -> None:
            for call in (
                lambda: broker.publish("orders", b"1"),
                lambda: anext(subscription),
                broker.topics,
                broker.close,
            ):
                try:
                    asyncio.run(call())  # type: ignore[arg-type]
                except BaseException as error:
                    failures.append(error)
            try:
                _ = broker.cluster_id
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert [type(each) for each in failures] == [WrongLoopError] * 5
        assert "run_coroutine_threadsafe" in str(failures[0])
        assert (await anext(subscription)).value == b"0"
        assert (await broker.offsets("orders")) == {0: 1}


@scenario
async def test_another_thread_may_have_its_calls_done_on_the_loop() -> None:
    async with LocalBroker() as broker:
        loop = asyncio.get_running_loop()

        def elsewhere() -> int:
            return asyncio.run_coroutine_threadsafe(broker.publish("orders", b"1"), loop).result(20).offset

        assert await asyncio.to_thread(elsewhere) == 0


@scenario
async def test_several_brokers_on_one_loop_know_nothing_of_each_other(tmp_path: Path) -> None:
    async with LocalBroker() as one, LocalBroker(data=tmp_path / "data") as two, LocalBroker(port=0) as three:
        for number, broker in enumerate((one, two, three)):
            await broker.publish("orders", str(number))
        for number, broker in enumerate((one, two, three)):
            assert [each.text() for each in (await broker.fetch("orders")).records] == [str(number)]
        assert len({each.cluster_id for each in (one, two, three)}) == 3


def test_it_runs_on_uvloop_as_well(tmp_path: Path) -> None:
    async def used() -> None:
        async with LocalBroker(data=tmp_path / "data", port=0) as broker:
            await broker.publish("orders", b"x")
            async with broker.subscribe("orders", group="g") as records:
                assert (await anext(records)).value == b"x"

    uvloop.run(used())


@scenario
async def test_kafka_clients_are_served_beside_the_code_in_the_process() -> None:
    async with LocalBroker(port=0, http_port=0) as broker:
        await broker.publish("orders", b"from inside")
        async with (
            AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
            AIOKafkaConsumer(
                "orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
            ) as consumer,
        ):
            await producer.send_and_wait("orders", b"from outside")
            assert [(await consumer.getone()).value for _ in range(2)] == [b"from inside", b"from outside"]
        records = broker.subscribe("orders")
        assert [(await anext(records)).value for _ in range(2)] == [b"from inside", b"from outside"]

        def by_http() -> object:
            with urllib.request.urlopen(f"{broker.http_url}/topics/orders", timeout=20) as answer:
                return json.load(answer)["name"]

        assert await asyncio.to_thread(by_http) == "orders"


@scenario
async def test_listeners_of_the_configs_are_opened_and_without_any_there_are_none() -> None:
    async with LocalBroker(configs={"listeners": "PLAINTEXT://127.0.0.1:0"}) as broker:
        assert broker.bootstrap_servers.startswith("127.0.0.1:")
        with pytest.raises(ClosedError, match="http_port=0"):
            _ = broker.http_url
    async with LocalBroker(http_port=0) as broker:
        assert broker.http_url.startswith("http://127.0.0.1:")
        with pytest.raises(ClosedError, match="port=0"):
            _ = broker.bootstrap_servers


@scenario
async def test_a_user_may_do_what_the_authorizer_says_and_the_owner_everything() -> None:
    configs = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    async with LocalBroker(configs=configs) as broker:
        await broker.publish("orders", b"x")
        ada = broker.as_user("ada")
        for call in (ada.publish("orders", b"y"), ada.fetch("orders"), anext(ada.subscribe("orders"))):
            with pytest.raises(TopicAuthorizationFailed):
                await call
        assert await ada.topics() == []
        with pytest.raises(KafkaError) as refused:
            await anext(ada.subscribe("orders", group="g"))
        assert refused.value.code.name == "GROUP_AUTHORIZATION_FAILED"
        assert await broker.offsets("orders") == {0: 1}
    async with LocalBroker(configs={**configs, "super.users": "User:ada"}) as broker:
        await broker.as_user("ada").publish("orders", b"y")


_USES = """
import asyncio, sys
from kbroker.local import LocalBroker

async def main():
    async with LocalBroker() as broker:
        await broker.publish("orders", b"x")
        async for record in broker.subscribe("orders"):
            break

asyncio.run(main())
loaded = sorted(name for name in sys.modules if name.startswith(({not_needed})))
print(loaded)
"""


def test_without_listeners_nothing_is_loaded_that_connections_need() -> None:
    not_needed = (
        "kbroker.server",
        "kbroker.network.connection",
        "kbroker.requests.session",
        "kbroker.handlers",
        "kbroker.http",
        "kbroker.protocol.messages.",
        "kbroker.kafka_python",
        "starlette",
        "uvicorn",
        "uvloop",
        "sqlite3",
    )
    script = _USES.replace("{not_needed}", ", ".join(map(repr, not_needed)))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
