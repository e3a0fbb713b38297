"""Code as users write it. It is not run, but checked by mypy --strict (test_typing.py); what is ignored must
be an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, assert_type

from kbroker.local import (
    CommittedOffset,
    ConfigDescription,
    DescribedGroup,
    DescribedTransaction,
    ErrorCode,
    Fetched,
    GroupLag,
    KafkaError,
    ListedGroup,
    LocalAccess,
    LocalBroker,
    LoopThread,
    NewRecord,
    PartitionDescription,
    ReceivedRecord,
    RecordMetadata,
    ResetOffset,
    ResetTo,
    Subscription,
    TopicDescription,
    TopicPartition,
    Transaction,
    UnexpectedOffset,
)
from kbroker.local.errors import TopicAlreadyExists


class Order(TypedDict):
    amount: int


async def use(order: Order, counts: dict[str, int], frozen: Mapping[str, str]) -> None:
    async with LocalBroker(data="data", port=0, configs={"num.partitions": 3}) as broker:
        assert_type(broker.bootstrap_servers, str)
        assert_type(await broker.create_topic("orders", partitions=3), TopicDescription)
        assert_type(await broker.publish("orders", order, key="ada"), RecordMetadata)
        await broker.publish("orders", counts, headers={"a": "b", "c": b"d"}, timestamp=datetime.now(UTC))
        await broker.publish("orders", frozen, headers=[("a", "b")], compression="zstd")
        await broker.publish("orders", [order], expected_offset=0)
        await broker.publish("orders", None, key=b"ada")
        await broker.publish("orders", 3)  # type: ignore[arg-type]
        await broker.publish("orders", "x", key=3)  # type: ignore[arg-type]
        await broker.publish("orders", "x", compression="rar")  # type: ignore[arg-type]
        many = [NewRecord("orders", order), NewRecord("payments", b"x", partition=0)]
        assert_type(await broker.publish_many(many), list[RecordMetadata])
        for told in await broker.publish_each(many):
            if isinstance(told, KafkaError):
                assert_type(told.code, ErrorCode)
                assert_type(told.retriable, bool)
            else:
                assert_type(told.offset, int)

        subscription = broker.subscribe("orders", group="billing", start="latest")
        assert_type(subscription, Subscription)
        async for record in subscription:
            assert_type(record, ReceivedRecord)
            assert_type(record.value, bytes | None)
            assert_type(record.headers, tuple[tuple[str, bytes | None], ...])
            assert_type(record.text(), str)
            assert_type(record.json(), Any)
            assert_type(record.time, datetime)
            await record.commit()
        async with broker.subscribe(TopicPartition("orders", 0), start=datetime.now(UTC)) as records:
            assert_type(await records.poll(10, max_wait_ms=100), list[ReceivedRecord])
        broker.subscribe("orders", start="middle")  # type: ignore[arg-type]
        broker.subscribe("orders", isolation="none")  # type: ignore[arg-type]

        assert_type(await broker.fetch("orders", 0, 3), Fetched)
        assert_type(await broker.offsets("orders", "earliest"), dict[int, int])
        assert_type(await broker.topics(), list[TopicDescription])
        assert_type(await broker.partitions("orders"), list[PartitionDescription])
        assert_type(await broker.delete_records("orders", 0, "latest"), int)
        assert_type(await broker.configs("topic", "orders"), list[ConfigDescription])
        await broker.alter_configs("group", "billing", values={"consumer.session.timeout.ms": 1, "x": None})
        assert_type(await broker.groups(), list[ListedGroup])
        assert_type(await broker.describe_group("billing"), DescribedGroup)
        lag = await broker.lag("billing")
        assert_type(lag, GroupLag)
        assert_type(lag.total, int)
        assert_type(await broker.committed("billing"), dict[TopicPartition, CommittedOffset])
        await broker.commit("billing", {TopicPartition("orders", 0): 3})
        await broker.commit("billing", {("orders", 0): 3})  # type: ignore[dict-item]
        assert_type(await broker.reset_offsets("billing", ResetTo("shift", -1)), list[ResetOffset])
        assert_type(broker.as_user("ada"), LocalAccess)

        async with broker.transaction("billing", timeout_ms=1000) as transaction:
            assert_type(transaction, Transaction)
            assert_type(await transaction.publish("invoices", order, key="ada"), RecordMetadata)
            assert_type(await transaction.publish_many(many), list[RecordMetadata])
            await transaction.commit_offsets(subscription)
            await transaction.commit_offsets("billing")  # type: ignore[arg-type]
            await transaction.commit_offsets_of("billing", {TopicPartition("orders", 0): 3})
        assert_type(await broker.transactions(), list[DescribedTransaction])
        assert_type(await broker.describe_transaction(transaction.id), DescribedTransaction)
        try:
            await broker.create_topic("orders")
        except TopicAlreadyExists as error:
            assert_type(error.code, ErrorCode)
        except UnexpectedOffset as error:
            assert_type(error.next_offset, int)


def use_without_a_loop(broker: LocalBroker) -> None:
    with LoopThread(broker) as thread:
        assert_type(thread.run(broker.publish("orders", "x")), RecordMetadata)
        for record in thread.each(broker.subscribe("orders")):
            assert_type(record, ReceivedRecord)
