"""The transactional producer of aiokafka, and its consumer of committed records."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced

from compat.clients.transactions import SECONDS, Fenced, Transactions

T = TypeVar("T")


class Aiokafka:
    """Its event loop runs in a thread."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._producer: AIOKafkaProducer | None = None

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None:
        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        self._producer = self._do(start())

    def begin(self) -> None:
        assert self._producer is not None
        self._do(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: str) -> None:
        assert self._producer is not None
        try:
            self._do(self._producer.send_and_wait(topic, value.encode(), partition=partition))
        except ProducerFenced as error:
            raise Fenced(str(error)) from error

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        assert self._producer is not None
        self._do(
            self._producer.send_offsets_to_transaction({TopicPartition(topic, partition): offset}, group)
        )

    def commit(self) -> None:
        assert self._producer is not None
        try:
            self._do(self._producer.commit_transaction())
        except ProducerFenced as error:
            raise Fenced(str(error)) from error

    def abort(self) -> None:
        assert self._producer is not None
        self._do(self._producer.abort_transaction())

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        async def read() -> list[str]:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self._bootstrap,
                isolation_level="read_committed" if committed else "read_uncommitted",
                auto_offset_reset="earliest",
                fetch_max_wait_ms=100,
            )
            await consumer.start()
            try:
                assigned = [TopicPartition(topic, number) for number in range(partitions)]
                consumer.assign(assigned)
                ends = await consumer.end_offsets(assigned)
                values: list[str] = []

                async def is_read(partition: TopicPartition) -> bool:
                    # end_offsets is the high watermark, whatever the isolation level.
                    end = consumer.last_stable_offset(partition) if committed else ends[partition]
                    return end is not None and await consumer.position(partition) >= end

                while not all([await is_read(each) for each in assigned]):
                    found = await consumer.getmany(*assigned, timeout_ms=100)
                    values += [record.value.decode() for records in found.values() for record in records]
                return values
            finally:
                await consumer.stop()

        return self._do(read())

    def close(self) -> None:
        try:
            if self._producer is not None:
                self._do(self._producer.stop())
        except Exception:
            pass  # a fenced producer cannot flush
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(SECONDS)
            self._loop.close()


class TestTransactions(Transactions):
    client = Aiokafka
