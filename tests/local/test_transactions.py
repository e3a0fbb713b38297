"""Transactions from code in the process: all or nothing, and exactly once from topic to topic."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from kbroker.local import KafkaError, LocalBroker, NewRecord, Subscription, TopicPartition, Transaction
from kbroker.local.errors import (
    InvalidRequest,
    InvalidTransactionTimeout,
    InvalidTxnState,
    MessageTooLarge,
    ProducerFenced,
    TransactionalIdNotFound,
    UnknownTopicOrPartition,
)
from tests.local.scenario import scenario

IN, OUT = TopicPartition("in", 0), TopicPartition("out", 0)


async def committed(broker: LocalBroker, topic: str = "out") -> list[str]:
    fetched = await broker.fetch(topic, isolation="read_committed", max_records=10_000)
    return [each.text() for each in fetched.records]


async def offset(broker: LocalBroker, group: str = "g") -> int | None:
    found = (await broker.committed(group)).get(IN)
    return None if found is None else found.offset


async def topics(broker: LocalBroker, count: int = 0) -> None:
    await broker.create_topic("in")
    await broker.create_topic("out", configs={"max.message.bytes": 2000})
    if count:
        await broker.publish_each([NewRecord("in", str(number)) for number in range(count)])


def reading(broker: LocalBroker) -> Subscription:
    return broker.subscribe("in", group="g", auto_commit=False)


@scenario
async def test_what_is_published_in_it_is_seen_with_its_commit() -> None:
    async with LocalBroker() as broker:
        await topics(broker)
        async with broker.transaction() as transaction:
            assert (await transaction.publish("out", {"amount": 1}, key="ada")).offset == 0
            many = [NewRecord("out", "2"), NewRecord("in", "3")]
            assert [each[:3] for each in await transaction.publish_many(many)] == [
                ("out", 0, 1),
                ("in", 0, 0),
            ]
            assert await transaction.publish_many([]) == []
            assert await committed(broker) == []
            assert len((await broker.fetch("out")).records) == 2
        assert await committed(broker) == ['{"amount":1}', "2"]
        assert await committed(broker, "in") == ["3"]


@scenario
async def test_an_exception_or_an_abort_takes_all_of_it_back() -> None:
    async with LocalBroker() as broker:
        await topics(broker)

        async def fails() -> None:
            async with broker.transaction() as transaction:
                await transaction.publish("out", "1")
                await transaction.commit_offsets_of("g", {IN: 1})
                raise LookupError

        with pytest.raises(LookupError):
            await fails()
        async with broker.transaction() as transaction:
            await transaction.publish("out", "2")
            await transaction.abort()
        assert await committed(broker) == []
        assert await offset(broker) is None
        states = {each.state.name for each in await broker.transactions()}
        assert states == {"COMPLETE_ABORT"}


@scenario
async def test_a_cancelled_one_is_aborted() -> None:
    async with LocalBroker() as broker:
        await topics(broker)
        published = asyncio.Event()

        async def hangs() -> None:
            async with broker.transaction() as transaction:
                await transaction.publish("out", "1")
                published.set()
                await asyncio.sleep(3600)

        hanging = asyncio.ensure_future(hangs())
        await published.wait()
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert (await broker.partitions("out"))[0].offsets.last_stable_offset == 2, "nothing is open"
        assert await committed(broker) == []


@scenario
async def test_after_a_failed_call_nothing_is_committed() -> None:
    async with LocalBroker() as broker:
        await topics(broker)

        async def goes_on() -> None:
            async with broker.transaction() as transaction:
                await transaction.publish("out", "1")
                with pytest.raises(MessageTooLarge):
                    await transaction.publish("out", "x" * 3000)

        with pytest.raises(InvalidTxnState, match="something in it failed"):
            await goes_on()
        with pytest.raises(UnknownTopicOrPartition):
            async with broker.transaction() as transaction:
                await transaction.publish("out", "1", partition=7)
        with pytest.raises(TypeError):
            async with broker.transaction() as transaction:
                await transaction.publish("out", 1)  # type: ignore[arg-type]
        assert await committed(broker) == []


@scenario
async def test_offsets_are_committed_with_it() -> None:
    async with LocalBroker() as broker:
        await topics(broker, 4)
        async with reading(broker) as records:
            taken = [await anext(records) for _ in range(3)]
            async with broker.transaction() as transaction:
                await transaction.commit_offsets(taken[0])
                await transaction.publish("out", "a")
                assert await offset(broker) is None
            assert await offset(broker) == 1
            async with broker.transaction() as transaction:
                await transaction.commit_offsets(records)
                assert [each.topics for each in [await broker.describe_transaction(transaction.id)]] != [{}]
            assert await offset(broker) == 3
            assert (await anext(records)).text() == "3"
        async with broker.transaction() as transaction:
            await transaction.commit_offsets_of("other", {IN: 2})
        assert await offset(broker, "other") == 2


@scenario
async def test_what_was_read_for_one_that_is_aborted_comes_again() -> None:
    async with LocalBroker() as broker:
        await topics(broker, 10)
        attempts = 0
        async with reading(broker) as records:
            while await offset(broker) != 10:
                some = await records.poll(3)
                attempts += 1
                try:
                    async with broker.transaction() as transaction:
                        await transaction.commit_offsets(records)
                        for record in some:
                            await transaction.publish("out", record.text())
                            if attempts % 2:
                                raise LookupError
                except LookupError:
                    pass
        assert attempts == 8
        assert await committed(broker) == [str(number) for number in range(10)]


@scenario
async def test_each_is_done_once_though_workers_die_on_the_way() -> None:
    """Workers of one group that are cancelled anywhere; who reads committed records sees each record once."""
    async with LocalBroker() as broker:
        await broker.create_topic("in", partitions=4)
        await broker.create_topic("out")
        count = 200
        await broker.publish_each([NewRecord("in", str(n), partition=n % 4) for n in range(count)])

        async def work() -> None:
            async with reading(broker) as records:
                while True:
                    some = await records.poll(5)
                    async with broker.transaction() as transaction:
                        await transaction.commit_offsets(records)
                        for record in some:
                            await transaction.publish("out", record.text())
                            await asyncio.sleep(0)

        workers = [asyncio.ensure_future(work()) for _ in range(3)]
        turns = 0
        while len(await committed(broker)) < count:
            for _ in range(turns % 40):
                await asyncio.sleep(0)
            turns += 1
            if turns < 60 and not turns % 3:
                workers.pop(0).cancel()
                workers.append(asyncio.ensure_future(work()))
            for each in workers:
                if each.done() and (error := each.exception()) is not None:
                    assert isinstance(error, KafkaError), error  # fenced by a rebalance: it starts again
            workers = [each if not each.done() else asyncio.ensure_future(work()) for each in workers]
            await asyncio.sleep(0.01)
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert sorted(map(int, await committed(broker))) == list(range(count))


@scenario
async def test_what_cannot_be_part_of_it_is_refused() -> None:
    async with LocalBroker() as broker, LocalBroker() as other:
        await topics(broker, 3)
        async with broker.subscribe("in") as free, broker.subscribe("in", group="auto") as auto:
            for records in (free, auto):
                await anext(records)
                with pytest.raises(InvalidRequest):
                    async with broker.transaction() as transaction:
                        await transaction.commit_offsets(records)
        await topics(other, 3)
        async with reading(other) as foreign, reading(broker) as unread:
            record = await anext(foreign)
            for each in (foreign, record):
                with pytest.raises(InvalidRequest, match="another broker"):
                    async with broker.transaction() as transaction:
                        await transaction.commit_offsets(each)
            async with broker.transaction() as transaction:
                await transaction.commit_offsets(unread)
        with pytest.raises(ValueError, match="transactional id"):
            broker.transaction("")
        with pytest.raises(InvalidTransactionTimeout):
            async with broker.transaction(timeout_ms=1 << 30):
                pass
        with pytest.raises(RuntimeError, match="async with"):
            await broker.transaction().publish("out", "x")
        done = broker.transaction()
        async with done:
            pass
        with pytest.raises(RuntimeError, match="begin another one"):
            await done.__aenter__()


@scenario
async def test_who_begins_with_a_transactional_id_fences_who_had_it() -> None:
    async with LocalBroker() as broker:
        await topics(broker)

        async def overtaken() -> None:
            async with broker.transaction("orders") as old:
                await old.publish("out", "old")
                async with broker.transaction("orders") as new:
                    await new.publish("out", "new")
                await old.publish("out", "old")

        with pytest.raises(ProducerFenced):
            await overtaken()
        assert await committed(broker) == ["new"]


@scenario
async def test_one_that_hangs_is_ended_by_its_timeout_or_by_somebody() -> None:
    async with LocalBroker() as broker:
        await topics(broker)

        async def state(transaction: Transaction) -> str:
            return (await broker.describe_transaction(transaction.id)).state.name

        async def hangs() -> None:
            async with broker.transaction(timeout_ms=50) as transaction:
                await transaction.publish("out", "1")
                while await state(transaction) == "ONGOING":  # noqa: ASYNC110
                    await asyncio.sleep(0.005)

        async def is_ended() -> None:
            async with broker.transaction("t") as transaction:
                await transaction.publish("out", "1")
                (listed,) = await broker.transactions("t", states=["Ongoing"])
                await broker.abort_transaction(str(listed.id))

        with pytest.raises(InvalidTxnState, match="timeout"):
            await hangs()
        with pytest.raises(KafkaError):
            await is_ended()
        assert await committed(broker) == []
        with pytest.raises(TransactionalIdNotFound):
            await broker.describe_transaction("none:1:1")


@scenario
async def test_a_kafka_client_sees_all_of_it_or_nothing(tmp_path: Path) -> None:
    async with LocalBroker(data=tmp_path / "data", port=0) as broker:
        await topics(broker)
        async with broker.transaction() as transaction:
            await transaction.publish("out", "aborted")
            await transaction.abort()
        async with broker.transaction() as transaction:
            await transaction.publish("out", "committed")
        async with AIOKafkaConsumer(
            "out",
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            assert (await consumer.getone()).value == b"committed"


@scenario
async def test_a_subscription_is_rewound_to_what_is_committed() -> None:
    async with LocalBroker() as broker:
        await topics(broker, 5)
        async with reading(broker) as records:
            assert [(await anext(records)).text() for _ in range(2)] == ["0", "1"]
            await records.commit()
            assert [each.text() for each in await records.poll(2)] == ["2", "3"]
            await records.rewind()
            assert [each.text() for each in await records.poll()] == ["2", "3", "4"]
            await records.rewind()
            waiting = asyncio.ensure_future(records.poll(9))
            assert len(await waiting) == 3
