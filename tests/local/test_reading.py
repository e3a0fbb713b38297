"""Reading without a group: from an offset, a time or an end, of topics and partitions there and to come."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from kbroker.local import LocalBroker, NewRecord, TopicPartition
from kbroker.local.errors import InvalidRequest, OffsetOutOfRange, UnknownTopicOrPartition
from tests.local.scenario import eventually, scenario

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


async def filled(broker: LocalBroker, count: int = 5, partitions: int = 1) -> None:
    """One record a second, the third at noon."""
    await broker.create_topic("t", partitions=partitions)
    for partition in range(partitions):
        records = [
            NewRecord(
                "t", f"{partition}-{number}", partition=partition, timestamp=NOON_MS + (number - 2) * 1000
            )
            for number in range(count)
        ]
        await broker.publish_each(records)


@pytest.mark.parametrize(
    ("start", "found"),
    [("earliest", "01234"), ("latest", ""), (2, "234"), (5, ""), (NOON, "234"), (datetime.now(UTC), "")],
)
@scenario
async def test_a_fetch_begins_where_it_is_told(start: object, found: str) -> None:
    async with LocalBroker() as broker:
        await filled(broker)
        fetched = await broker.fetch("t", 0, start)  # type: ignore[arg-type]
        assert [each.text() for each in fetched.records] == [f"0-{number}" for number in found]
        assert (fetched.next_offset, fetched.high_watermark, fetched.log_start_offset) == (5, 5, 0)


@scenario
async def test_a_fetch_is_bounded_and_waits() -> None:
    async with LocalBroker() as broker:
        await filled(broker)
        assert len((await broker.fetch("t", max_records=2)).records) == 2
        assert len((await broker.fetch("t", max_bytes=1)).records) == 1
        waiting = asyncio.ensure_future(broker.fetch("t", 0, 5, max_wait_ms=60_000))
        await eventually(lambda: bool(broker._calls._waiting))
        await broker.publish("t", "new")
        (record,) = (await waiting).records
        assert (record.text(), record.offset) == ("new", 5)
        with pytest.raises(InvalidRequest, match="without a group"):
            await record.commit()
        assert (await broker.fetch("t", 0, "latest", max_wait_ms=20)).records == []


@scenario
async def test_what_cannot_be_fetched_says_why() -> None:
    async with LocalBroker() as broker:
        await filled(broker)
        with pytest.raises(OffsetOutOfRange):
            await broker.fetch("t", 0, 6)
        with pytest.raises(UnknownTopicOrPartition, match="there is no partition 1"):
            await broker.fetch("t", 1)
        with pytest.raises(UnknownTopicOrPartition):
            await broker.fetch("none")
        with pytest.raises(ValueError, match="time zone"):
            await broker.fetch("t", 0, datetime(2026, 1, 31))


@scenario
async def test_offsets_are_found_by_end_and_time() -> None:
    async with LocalBroker() as broker:
        await filled(broker, partitions=2)
        await broker.delete_records("t", 1, 1)
        assert await broker.offsets("t") == {0: 5, 1: 5}
        assert await broker.offsets("t", "earliest") == {0: 0, 1: 1}
        assert await broker.offsets("t", NOON) == {0: 2, 1: 2}
        assert await broker.offsets("t", datetime.now(UTC)) == {0: 5, 1: 5}


@pytest.mark.parametrize(
    ("start", "found"),
    [("earliest", "01234"), ("latest", ""), (2, "234"), (5, ""), (NOON, "234"), (datetime.now(UTC), "")],
)
@scenario
async def test_a_subscription_begins_where_it_is_told(start: object, found: str) -> None:
    async with LocalBroker() as broker:
        await filled(broker, partitions=2)
        async with broker.subscribe("t", start=start) as records:  # type: ignore[arg-type]
            taken = [(await anext(records)).text() for _ in range(2 * len(found))]
            assert sorted(taken) == [f"{partition}-{number}" for partition in (0, 1) for number in found]
            assert await records.poll(max_wait_ms=20) == []
            await broker.publish("t", "new")
            assert (await anext(records)).text() == "new"


@scenario
async def test_a_start_behind_the_end_is_refused_and_one_that_is_gone_becomes_the_first() -> None:
    async with LocalBroker() as broker:
        await filled(broker)
        with pytest.raises(OffsetOutOfRange, match="The next offset of t-0 is 5"):
            await anext(broker.subscribe("t", start=6))
        await broker.delete_records("t", 0, 3)
        async with broker.subscribe("t", start=1) as records:
            assert (await anext(records)).offset == 3


@scenario
async def test_single_partitions_can_be_read() -> None:
    async with LocalBroker() as broker:
        await filled(broker, partitions=3)
        async with broker.subscribe(TopicPartition("t", 2), TopicPartition("t", 0), start=4) as records:
            assert {(await anext(records)).text() for _ in range(2)} == {"0-4", "2-4"}
            assert records.assignment == [TopicPartition("t", 0), TopicPartition("t", 2)]
        with pytest.raises(UnknownTopicOrPartition, match="there is no partition 3"):
            await anext(broker.subscribe(TopicPartition("t", 3)))


@scenario
async def test_topics_and_partitions_to_come_are_read_from_their_first_record() -> None:
    async with LocalBroker() as broker:
        await filled(broker)
        async with broker.subscribe("t", "u", start="latest") as records:
            waiting = asyncio.ensure_future(anext(records))
            await eventually(lambda: bool(records.assignment))
            await broker.create_topic("u")
            await broker.publish("u", "of a new topic")
            assert (await waiting).text() == "of a new topic"
            await broker.add_partitions("t", 2)
            await broker.publish("t", "of a new partition", partition=1)
            assert (await anext(records)).text() == "of a new partition"
            assert len(records.assignment) == 3


@scenario
async def test_a_topic_that_is_not_there_yet_is_waited_for() -> None:
    async with LocalBroker() as broker, broker.subscribe("late") as records:
        assert await records.poll(max_wait_ms=20) == []
        waiting = asyncio.ensure_future(anext(records))
        await broker.publish("late", "x")
        assert (await waiting).text() == "x"


@scenario
async def test_a_topic_that_is_made_anew_is_another_one() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 3)
        async with broker.subscribe("t") as records:
            for _ in range(3):
                await anext(records)
            waiting = asyncio.ensure_future(anext(records))
            await asyncio.sleep(0)
            await broker.delete_topic("t")
            await broker.create_topic("t")
            await broker.publish("t", "new")
            record = await waiting
            assert (record.text(), record.offset) == ("new", 0)


@scenario
async def test_a_pattern_reads_what_matches_it() -> None:
    async with LocalBroker() as broker:
        for name in ("orders-eu", "orders-us", "my-orders-eu"):
            await broker.publish(name, name)
        async with broker.subscribe(pattern="orders-.*") as records:
            assert {(await anext(records)).topic for _ in range(2)} == {"orders-eu", "orders-us"}
            assert await records.poll(max_wait_ms=20) == []
            await broker.publish("orders-jp", "new")
            assert (await anext(records)).topic == "orders-jp"


@scenario
async def test_several_read_the_same_and_commit_nothing() -> None:
    async with LocalBroker() as broker:
        await filled(broker)
        async with broker.subscribe("t") as one, broker.subscribe("t") as two:
            for records in (one, two):
                assert [(await anext(records)).offset for _ in range(5)] == [0, 1, 2, 3, 4]
            with pytest.raises(InvalidRequest, match="group"):
                await one.commit()
        assert await broker.groups() == []


@scenario
async def test_records_that_were_deleted_meanwhile_are_passed_over() -> None:
    async with LocalBroker() as broker:
        await filled(broker)
        async with broker.subscribe("t") as records:
            assert len(await records.poll()) == 5
            for _ in range(3):
                await broker.publish("t", "x")
            await broker.delete_records("t", 0, 7)
            assert [each.offset for each in await records.poll()] == [7]
