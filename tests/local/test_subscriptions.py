"""Subscriptions of groups: nothing is lost, however iterations end and members come and go."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from kbroker.local import LocalBroker, NewRecord, ReceivedRecord, TopicPartition
from kbroker.local.errors import (
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    InvalidRequest,
    StaleMemberEpoch,
)
from kbroker.local.subscription import source_of
from tests.local.scenario import eventually, scenario

P0 = TopicPartition("t", 0)


async def filled(broker: LocalBroker, count: int, partitions: int = 1) -> None:
    await broker.create_topic("t", partitions=partitions)
    records = [NewRecord("t", str(number), partition=number % partitions) for number in range(count)]
    assert len(await broker.publish_each(records)) == count


def texts(records: Sequence[ReceivedRecord]) -> list[str]:
    return [each.text() for each in records]


async def committed(broker: LocalBroker, group: str = "g") -> dict[TopicPartition, int]:
    return {at: each.offset for at, each in (await broker.committed(group)).items()}


async def until_empty(broker: LocalBroker, group: str = "g") -> None:
    while (await broker.describe_group(group)).members:  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def fail_with(broker: LocalBroker, count: int, *, commit: bool = False) -> None:
    """With so many records taken, the last of them in hand."""
    async with broker.subscribe("t", group="g") as records:
        for _ in range(count):
            record = await anext(records)
        if commit:
            await record.commit()
        raise LookupError


async def left(broker: LocalBroker, group: str = "g") -> list[str]:
    """What the group has yet to get."""
    async with broker.subscribe("t", group=group) as records:
        found = []
        end = (await broker.offsets("t"))[0]
        begin = (await committed(broker, group)).get(P0, 0)
        while len(found) < end - begin:
            found += texts(await records.poll())
        return found


@scenario
async def test_a_new_group_begins_at_an_end_of_the_log_and_others_where_they_were() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 3)
        async with broker.subscribe("t", group="g") as records:
            assert texts([await anext(records) for _ in range(2)]) == ["0", "1"]
        assert await committed(broker) == {P0: 2}
        async with broker.subscribe("t", group="g", start="latest") as records:
            assert (await anext(records)).text() == "2"
        async with broker.subscribe("t", group="late", start="latest") as records:
            assert await records.poll(max_wait_ms=50) == []
            waiting = asyncio.ensure_future(anext(records))
            await eventually(lambda: bool(records.assignment))
            await broker.publish("t", "3")
            assert (await waiting).text() == "3"


@scenario
async def test_a_record_in_hand_is_done_when_the_next_is_asked_for() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 3)
        async for record in broker.subscribe("t", group="g"):
            if record.text() == "1":
                break
        gc.collect()
        await until_empty(broker)
        assert await committed(broker) == {P0: 1}
        assert await left(broker) == ["1", "2"]


@pytest.mark.parametrize("how", ["exception", "cancellation"])
@scenario
async def test_an_iteration_that_fails_leaves_the_group_and_loses_nothing(how: str) -> None:
    async with LocalBroker() as broker:
        await filled(broker, 4)
        reached = asyncio.Event()

        async def work() -> None:
            async for record in broker.subscribe("t", group="g"):
                if record.text() == "2":
                    reached.set()
                    if how == "exception":
                        raise LookupError
                    await asyncio.sleep(3600)

        working = asyncio.ensure_future(work())
        await reached.wait()
        working.cancel()
        with pytest.raises(LookupError if how == "exception" else asyncio.CancelledError):
            await working
        del working
        gc.collect()
        await until_empty(broker)
        assert await committed(broker) == {P0: 2}
        assert await left(broker) == ["2", "3"]


@scenario
async def test_with_async_with_the_group_is_left_when_the_block_ends() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 3)
        with pytest.raises(LookupError):
            await fail_with(broker, 2)
        assert (await broker.describe_group("g")).members == []
        assert await committed(broker) == {P0: 1}
        async with broker.subscribe("t", group="g") as records:
            assert (await anext(records)).text() == "1"
        assert (await broker.describe_group("g")).members == []
        assert await committed(broker) == {P0: 2}, "the block ended well: what was in hand is done"
        assert [each async for each in records] == []


@scenario
async def test_a_cancelled_wait_loses_nothing() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 0)
        async with broker.subscribe("t", group="g") as records:
            for number in range(300):
                waiting = asyncio.ensure_future(anext(records))
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                publishing = asyncio.ensure_future(broker.publish("t", str(number)))
                for _ in range(number % 5):
                    await asyncio.sleep(0)
                waiting.cancel()
                await publishing
                with contextlib.suppress(asyncio.CancelledError):
                    assert (await waiting).text() == str(number)
                    continue
                async with asyncio.timeout(20):
                    assert (await anext(records)).text() == str(number)
        assert await committed(broker) == {P0: 300}


@scenario
async def test_waits_that_are_given_up_leave_nothing_behind() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 0)
        async with broker.subscribe("t", group="g") as records, broker.subscribe("none") as waiting:
            for _ in range(50):
                assert await records.poll(max_wait_ms=1) == await waiting.poll(max_wait_ms=1) == []
            source = source_of(records)
            assert source is not None
            assert source._polling is not None
            assert len(source._polling._callbacks) == 1
            assert len(broker._calls._waiting) == 1
            following = source_of(waiting)._following  # type: ignore[union-attr]
            assert following is not None
            assert following._waiting == {}


@scenario
async def test_polls_return_some_at_a_time_and_end_after_their_wait() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 5)
        async with broker.subscribe("t", group="g") as records:
            assert texts(await records.poll(2)) == ["0", "1"]
            assert texts(await records.poll(2)) == ["2", "3"]
            await records.commit()
            assert await committed(broker) == {P0: 4}
            assert (await anext(records)).text() == "4"
            assert await records.poll(max_wait_ms=20) == []
            with pytest.raises(ValueError, match="max_records"):
                await records.poll(0)
        assert await records.poll() == []


@scenario
async def test_what_is_done_is_committed_from_time_to_time() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 5)
        async with broker.subscribe("t", group="g", auto_commit_interval_ms=0) as records:
            for _ in range(3):
                await anext(records)
                await broker._calls.turn()
                broker._calls._slice_ends = 0
            assert await committed(broker) == {P0: 2}


@scenario
async def test_what_is_done_is_committed_while_nothing_new_comes() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 3)
        async with broker.subscribe("t", group="g", auto_commit_interval_ms=1) as records:
            for _ in range(3):
                await anext(records)
            waiting = asyncio.ensure_future(anext(records))
            while await committed(broker) != {P0: 3}:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            assert not waiting.done()
            waiting.cancel()


@scenario
async def test_without_auto_commit_only_what_is_said_is_committed() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 5)
        async with broker.subscribe("t", group="g", auto_commit=False) as records:
            taken = [await anext(records) for _ in range(4)]
            assert await committed(broker) == {}
            await taken[1].commit()
            assert await committed(broker) == {P0: 2}
            await records.commit()
            assert await committed(broker) == {P0: 4}
            await anext(records)
        assert await committed(broker) == {P0: 4}
        with pytest.raises(InvalidRequest, match="closed"):
            await taken[0].commit()


@scenario
async def test_a_commit_goes_along_with_auto_commit() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 5)
        with pytest.raises(LookupError):
            await fail_with(broker, 3, commit=True)
        assert await committed(broker) == {P0: 3}


@scenario
async def test_partitions_are_shared_and_what_is_read_ahead_goes_to_who_has_them_then() -> None:
    """The first has read all ahead, and is slow: the second gets its half nevertheless, and nothing twice."""
    async with LocalBroker() as broker:
        await filled(broker, 400, partitions=4)
        got: Counter[str] = Counter()
        second_has_some = asyncio.Event()
        all_got = asyncio.Event()

        def note(record: ReceivedRecord) -> None:
            got[record.text()] += 1
            if len(got) == 400:
                all_got.set()

        async def first() -> None:
            async with broker.subscribe("t", group="g") as records:
                async for record in records:
                    note(record)
                    await (asyncio.sleep(0.001) if not second_has_some.is_set() else asyncio.sleep(0))

        async def second() -> None:
            async with broker.subscribe("t", group="g") as records:
                async for record in records:
                    note(record)
                    second_has_some.set()

        tasks = [asyncio.ensure_future(first())]
        await eventually(lambda: bool(got))
        tasks.append(asyncio.ensure_future(second()))
        await second_has_some.wait()
        assert len(got) < 400
        await all_got.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert set(got.values()) == {1}
        lag = await broker.lag("g")
        assert lag.total <= 2, "all but what was in hand is committed"


@scenario
async def test_a_member_that_comes_takes_over_from_one_that_stops_listening() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 10)
        one = broker.subscribe("t", group="g")
        await anext(one)
        await anext(one)
        waiting = asyncio.ensure_future(anext(broker.subscribe("t", group="g")))
        await one.close()
        assert (await waiting).text() == "1"


@scenario
async def test_a_record_of_a_partition_that_was_given_away_cannot_be_committed() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 4, partitions=2)
        async with (
            broker.subscribe("t", group="g") as one,
            broker.subscribe("t", group="g") as other,
        ):
            held = await one.poll()
            assert len(held) == 4
            assert await one.poll(max_wait_ms=10) == []
            taking = asyncio.ensure_future(anext(other))
            while len(one.assignment) == 2:
                await one.poll(max_wait_ms=5)
            await eventually(lambda: len(other.assignment) == 1)
            taking.cancel()
            (lost,) = other.assignment
            with pytest.raises(StaleMemberEpoch):
                await next(each for each in held if each.partition == lost.partition).commit()


@scenario
async def test_a_pattern_reads_topics_to_come() -> None:
    async with LocalBroker() as broker:
        async with broker.subscribe(pattern="orders-.*", group="g") as records:
            waiting = asyncio.ensure_future(anext(records))
            await broker.publish("other", "no")
            await broker.publish("orders-eu", "yes")
            assert (await waiting).topic == "orders-eu"
        with pytest.raises(InvalidRegularExpression):
            await anext(broker.subscribe(pattern="(", group="h"))


@scenario
async def test_what_cannot_be_subscribed_is_said_at_once() -> None:
    async with LocalBroker(configs={"group.consumer.max.size": 1}) as broker:
        for wrong in (
            {"topics": (), "pattern": ""},
            {"topics": ("t",), "pattern": "t"},
            {"topics": ("t",), "group": "g", "start": 3},
            {"topics": (P0,), "group": "g"},
            {"topics": ("t",), "start": "somewhere"},
            {"topics": ("t",), "start": -1},
            {"topics": ("t",), "isolation": "none"},
        ):
            topics = wrong.pop("topics")
            with pytest.raises(ValueError):  # noqa: PT011
                broker.subscribe(*topics, **wrong)  # type: ignore[misc, arg-type]
        await filled(broker, 1)
        async with broker.subscribe("t", group="g") as records:
            await anext(records)
            with pytest.raises(GroupMaxSizeReached):
                await anext(broker.subscribe("t", group="g"))


@scenario
async def test_one_task_at_a_time_reads_a_subscription() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 0)
        async with broker.subscribe("t", group="g") as records:
            waiting = asyncio.ensure_future(anext(records))
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="one task at a time"):
                await anext(records)
            await broker.publish("t", "x")
            assert (await waiting).text() == "x"


@scenario
async def test_what_is_read_ahead_counts_in_the_budget() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 0)
        await broker.publish_each([NewRecord("t", b"x" * 10_000) for _ in range(20)])
        budget = broker._calls.broker.budget
        records = broker.subscribe("t", group="g")
        await anext(records)
        assert budget.used > 200_000
        await records.close()
        assert budget.used == 0
        async with broker.subscribe("t") as records:
            for _ in range(20):
                await anext(records)
            assert await records.poll(max_wait_ms=10) == []
            assert budget.used == 0


@scenario
async def test_committed_offsets_outlive_the_broker(tmp_path: Path) -> None:
    async with LocalBroker(data=tmp_path / "data") as broker:
        await filled(broker, 3)
        records = broker.subscribe("t", group="g")
        await anext(records)
        await anext(records)
    async with LocalBroker(data=tmp_path / "data") as broker:
        assert await committed(broker) == {P0: 1}, "the broker's end is the subscription's, too"
        assert await left(broker) == ["1", "2"]


@scenario
async def test_who_iterates_without_end_lets_others_have_their_turn() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 5000)
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(other())
        async with broker.subscribe("t") as records:
            for _ in range(5000):
                await anext(records)
        assert turns > 3
        beside.cancel()


@scenario
async def test_a_share_group_has_no_members_of_this_kind() -> None:
    async with LocalBroker() as broker:
        await filled(broker, 1)
        groups = broker._calls.broker.groups
        await broker._calls.settled(groups.share_groups.create_empty("s", 0))
        with pytest.raises(GroupIdNotFound):
            await anext(broker.subscribe("t", group="s"))
