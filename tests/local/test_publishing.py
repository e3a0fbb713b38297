"""Publishing from code in the process: what values are, where records go, all or nothing, limits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kbroker.local import KafkaError, LocalBroker, NewRecord, Origin, RecordMetadata, UnexpectedOffset
from kbroker.local.errors import (
    InvalidRequest,
    InvalidTopicException,
    MessageTooLarge,
    OutOfOrderSequenceNumber,
    UnknownTopicOrPartition,
)
from tests.local.scenario import scenario


async def stored(broker: LocalBroker, topic: str = "t", partition: int = 0) -> list[Any]:
    return [each.value for each in (await broker.fetch(topic, partition, max_records=10_000)).records]


@scenario
async def test_a_value_says_by_its_type_how_it_is_written() -> None:
    async with LocalBroker() as broker:
        values: list[Any] = [
            b"\xff\x00",
            bytearray(b"a"),
            memoryview(b"m"),
            "tëxt",
            {"ä": [1, None]},
            [1],
            None,
        ]
        for value in values:
            await broker.publish("t", value)
        assert await stored(broker) == [
            b"\xff\x00",
            b"a",
            b"m",
            "tëxt".encode(),
            '{"ä":[1,null]}'.encode(),
            b"[1]",
            None,
        ]
        records = (await broker.fetch("t")).records
        assert records[3].text() == "tëxt"
        assert records[4].json() == {"ä": [1, None]}
        for read in (records[-1].text, records[-1].json):
            with pytest.raises(ValueError, match="tombstone"):
                read()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"value": 3}, TypeError),
        ({"value": object()}, TypeError),
        ({"value": {"x": object()}}, TypeError),
        ({"value": {"x": float("nan")}}, ValueError),
        ({"value": b"", "key": 3}, TypeError),
        ({"value": b"", "headers": {"a": 3}}, TypeError),
        ({"value": b"", "headers": [(3, b"a")]}, TypeError),
        ({"value": b"", "timestamp": -1}, ValueError),
        ({"value": b"", "timestamp": 1 << 63}, ValueError),
        ({"value": b"", "timestamp": datetime(2026, 1, 1)}, ValueError),
        ({"value": b"", "compression": "rar"}, ValueError),
        ({"value": b"", "partition": 7}, UnknownTopicOrPartition),
        ({"value": b"", "partition": -1}, UnknownTopicOrPartition),
        ({"value": b"", "origin": Origin("", 0)}, ValueError),
        ({"value": b"", "origin": Origin("a", -1)}, ValueError),
        ({"value": b"", "topic": "no/name"}, InvalidTopicException),
        ({"value": b"x" * (2 << 20)}, MessageTooLarge),
    ],
)
@scenario
async def test_what_cannot_be_published_is_refused_and_nothing_is_written(
    given: dict[str, Any], error: type[Exception]
) -> None:
    async with LocalBroker() as broker:
        await broker.create_topic("t", partitions=1)
        with pytest.raises(error):
            await broker.publish(**{"topic": "t", **given})
        assert await stored(broker) == []


@scenario
async def test_all_of_a_record_is_kept() -> None:
    async with LocalBroker() as broker:
        moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
        headers = {"trace": "a1", "none": None, "bytes": b"\x00"}
        told = await broker.publish("t", "x", key="ada", headers=headers, timestamp=moment)
        assert told == RecordMetadata("t", 0, 0, int(moment.timestamp() * 1000))
        twice = [("a", "1"), ("a", b"2")]
        await broker.publish("t", "x", headers=twice, timestamp=5)
        first, second = (await broker.fetch("t")).records
        assert (first.key, first.headers, first.time) == (
            b"ada",
            (("trace", b"a1"), ("none", None), ("bytes", b"\x00")),
            moment,
        )
        assert (second.headers, second.timestamp) == ((("a", b"1"), ("a", b"2")), 5)


@scenario
async def test_a_key_has_its_partition_and_records_without_one_take_turns() -> None:
    async with LocalBroker() as broker:
        await broker.create_topic("t", partitions=4)
        by_key = {(await broker.publish("t", "x", key="ada")).partition for _ in range(5)}
        assert len(by_key) == 1
        keyless = {(await broker.publish("t", "x")).partition for _ in range(4)}
        assert keyless == {0, 1, 2, 3}
        assert (await broker.publish("t", "x", partition=3)).partition == 3


@scenario
async def test_of_those_who_expect_the_same_offset_one_writes() -> None:
    async with LocalBroker() as broker:
        await broker.create_topic("t", partitions=2)

        async def attempt(number: int) -> int:
            told = await broker.publish("t", str(number), partition=1, expected_offset=0)
            return told.offset

        outcomes = await asyncio.gather(*map(attempt, range(10)), return_exceptions=True)
        assert outcomes.count(0) == 1
        refused = [each for each in outcomes if isinstance(each, UnexpectedOffset)]
        assert len(refused) == 9
        assert {each.next_offset for each in refused} == {1}
        assert not refused[0].retriable
        many = [NewRecord("t", "a", partition=1), NewRecord("t", "b", partition=1)]
        with pytest.raises(UnexpectedOffset):
            await broker.publish_many(many, expected_offset=0)
        assert [each.offset for each in await broker.publish_many(many, expected_offset=1)] == [1, 2]
        with pytest.raises(InvalidRequest):
            await broker.publish("t", "whose turn it is", expected_offset=0)


@scenario
async def test_an_origin_writes_once_even_over_a_restart(tmp_path: Path) -> None:
    async with LocalBroker(data=tmp_path / "data") as broker:
        for sequence in (0, 1, 0, 2, 1):
            told = await broker.publish("t", str(sequence), origin=Origin("sensor-7", sequence))
            assert told.offset == sequence
    async with LocalBroker(data=tmp_path / "data") as broker:
        assert (await broker.publish("t", "2", origin=Origin("sensor-7", 2))).offset == 2
        with pytest.raises(OutOfOrderSequenceNumber):
            await broker.publish("t", "a gap", origin=Origin("sensor-7", 7))
        assert (await broker.publish("t", "other", origin=Origin("sensor-8", 0))).offset == 3
        assert await stored(broker) == [b"0", b"1", b"2", b"other"]


@scenario
async def test_each_of_several_succeeds_or_fails_by_itself() -> None:
    async with LocalBroker(configs={"auto.create.topics.enable": False}) as broker:
        await broker.create_topic("t", partitions=2, configs={"max.message.bytes": 1000})
        outcomes = await broker.publish_each(
            [
                NewRecord("t", "a", partition=1),
                NewRecord("none", "b"),
                NewRecord("t", "x" * 2000, partition=0),
                NewRecord("t", "c", partition=1),
            ]
        )
        assert outcomes[0] == RecordMetadata("t", 1, 0, outcomes[0].timestamp)  # type: ignore[union-attr]
        assert isinstance(outcomes[1], UnknownTopicOrPartition)
        assert isinstance(outcomes[2], MessageTooLarge)
        assert isinstance(outcomes[3], RecordMetadata)
        assert (await stored(broker, "t", 0), await stored(broker, "t", 1)) == ([], [b"a", b"c"])
        assert await broker.publish_each([]) == []


@scenario
async def test_many_are_published_all_or_none_over_topics(tmp_path: Path) -> None:
    async with LocalBroker(data=tmp_path / "data") as broker:
        await broker.create_topic("a", partitions=2)
        await broker.create_topic("b", configs={"max.message.bytes": 1000})
        good = [NewRecord("a", "1", partition=0), NewRecord("b", "2"), NewRecord("a", "3", partition=1)]
        told = await broker.publish_many(good)
        assert [each[:3] for each in told] == [("a", 0, 0), ("b", 0, 0), ("a", 1, 0)]
        with pytest.raises(MessageTooLarge):
            await broker.publish_many([*good, NewRecord("b", "x" * 2000)])
        with pytest.raises(UnknownTopicOrPartition):
            await broker.publish_many([*good, NewRecord("a", "x", partition=9)])
        with pytest.raises(TypeError):
            await broker.publish_many([*good, NewRecord("a", 9)])  # type: ignore[arg-type]
        committed = await broker.fetch("a", 0, isolation="read_committed")
        assert [each.text() for each in committed.records] == ["1"]
        assert await broker.publish_many([]) == []


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
@scenario
async def test_records_can_be_compressed(compression: Any) -> None:
    async with LocalBroker() as broker:
        values = [f"{number}" * 1000 for number in range(100)]
        await broker.publish("t", values[0], compression=compression)
        await broker.publish_each([NewRecord("t", each) for each in values[1:50]], compression=compression)
        await broker.publish_many([NewRecord("t", each) for each in values[50:]], compression=compression)
        assert [each.decode() for each in await stored(broker)] == values
        (description,) = await broker.partitions("t")
        assert description.offsets.size_bytes is not None
        assert description.offsets.size_bytes < sum(map(len, values)) / 10


@scenario
async def test_large_ones_wait_until_the_process_has_room() -> None:
    limit = 4 << 20
    configs = {"queued.max.request.bytes": limit, "message.max.bytes": 2 << 20}
    async with LocalBroker(configs=configs) as broker:
        budget = broker._calls.broker.budget
        most = 0

        async def publish(number: int) -> int:
            nonlocal most
            told = await broker.publish("t", bytes([number]) * (1 << 20))
            most = max(most, budget.used)
            return told.offset

        held = limit // 2
        budget.take(held)
        publishing = [asyncio.ensure_future(publish(number)) for number in range(20)]
        for _ in range(20):
            await asyncio.sleep(0)
        budget.give_back(held)
        assert sorted(await asyncio.gather(*publishing)) == list(range(20))
        assert most <= 2 * limit
        assert budget.used == 0

        older = object()
        budget.reserve(limit, lambda: None, older)
        waiting = asyncio.ensure_future(publish(0))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        budget.give_back(limit)
        budget.frame_ended(older)
        assert budget.used == 0
        assert await broker.offsets("t") == {0: 20}


@scenario
async def test_who_publishes_without_end_lets_others_have_their_turn() -> None:
    async with LocalBroker() as broker:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(other())
        while turns < 5:
            await broker.publish("t", b"x")
        beside.cancel()


@scenario
async def test_errors_have_kafkas_names_and_codes() -> None:
    async with LocalBroker() as broker:
        with pytest.raises(KafkaError, match=r"^UNKNOWN_TOPIC_OR_PARTITION: ") as refused:
            await broker.fetch("none")
        assert (refused.value.code, refused.value.code.name) == (3, "UNKNOWN_TOPIC_OR_PARTITION")
        assert refused.value.retriable
        assert refused.value.__cause__ is not None
