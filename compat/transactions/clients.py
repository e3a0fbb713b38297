"""The transactional producers and the consumers of four clients, behind one face.

`Fenced` is what each of them raises when another producer has taken over its transactional id.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import confluent_kafka
import kafka
import kafka.errors
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import ProducerFenced

from compat.harness import jars, java
from compat.harness.kafka import LOG4J2

T = TypeVar("T")

SECONDS = 30
SOURCE = Path(__file__).with_name("TransactionalClient.java")


class Fenced(Exception):
    """Another producer has this transactional id."""


class Client(Protocol):
    """One producer with a transactional id (after `init`), and a way to read."""

    def __init__(self, bootstrap: str) -> None: ...

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: str) -> None:
        """Returns when it is acknowledged."""
        ...

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        """All values up to the end that this isolation level has."""
        ...

    def close(self) -> None: ...


class Confluent:
    def __init__(self, bootstrap: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 2}
        self._producer: confluent_kafka.Producer | None = None

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None:
        settings = {
            **self._settings,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
        }
        self._producer = confluent_kafka.Producer(settings)
        self._producer.init_transactions(SECONDS)

    def begin(self) -> None:
        assert self._producer is not None
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: str) -> None:
        assert self._producer is not None
        try:
            # No callback: called while a fatal error is being raised, it would be taken for a bug by Python.
            # What is not delivered fails the transaction.
            self._producer.produce(topic, value, partition=partition)
            self._producer.flush(SECONDS)
        except confluent_kafka.KafkaException as error:
            self._raise(error.args[0])

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        assert self._producer is not None
        consumer = confluent_kafka.Consumer({**self._settings, "group.id": group})
        try:
            position = confluent_kafka.TopicPartition(topic, partition, offset)
            self._producer.send_offsets_to_transaction(
                [position], consumer.consumer_group_metadata(), SECONDS
            )
        finally:
            consumer.close()

    def commit(self) -> None:
        assert self._producer is not None
        try:
            self._producer.commit_transaction(SECONDS)
        except confluent_kafka.KafkaException as error:
            self._raise(error.args[0])

    def abort(self) -> None:
        assert self._producer is not None
        self._producer.abort_transaction(SECONDS)

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        settings = {
            **self._settings,
            "group.id": "compat-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
        consumer = confluent_kafka.Consumer(settings)
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
        values: list[str] = []
        ended = 0
        try:
            while ended < partitions:
                message = consumer.poll(SECONDS)
                assert message is not None, "nothing to read, and no end"
                if message.error() is None:
                    values.append((message.value() or b"").decode())
                else:
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, (
                        message.error()
                    )
                    ended += 1
        finally:
            consumer.close()
        return values

    def close(self) -> None:
        self._producer = None

    def _raise(self, error: confluent_kafka.KafkaError) -> None:
        if error.fatal() or error.code() in (
            confluent_kafka.KafkaError._FENCED,
            confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH,
        ):
            raise Fenced(str(error))
        raise confluent_kafka.KafkaException(error)


class KafkaPython:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer: Any = None

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=self._bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=0,
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: str) -> None:
        try:
            self._producer.send(topic, value.encode(), partition=partition).get(SECONDS)
        except kafka.errors.KafkaError as error:
            self._raise(error)

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        position = kafka.structs.OffsetAndMetadata(offset, "", -1)
        self._producer.send_offsets_to_transaction({kafka.TopicPartition(topic, partition): position}, group)

    def commit(self) -> None:
        try:
            self._producer.commit_transaction()
        except kafka.errors.KafkaError as error:
            self._raise(error)

    def abort(self) -> None:
        self._producer.abort_transaction()

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            isolation_level="read_committed" if committed else "read_uncommitted",
            fetch_max_wait_ms=100,
        )
        try:
            assigned = [kafka.TopicPartition(topic, number) for number in range(partitions)]
            consumer.assign(assigned)
            ends = consumer.end_offsets(assigned)
            for each in assigned:
                consumer.seek(each, 0)
            values: list[str] = []
            while any(consumer.position(each) < ends[each] for each in assigned):
                for records in consumer.poll(100).values():
                    values += [record.value.decode() for record in records]
            return values
        finally:
            consumer.close()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close(timeout=0)

    def _raise(self, error: Exception) -> None:
        fenced = (kafka.errors.ProducerFencedError, kafka.errors.InvalidProducerEpochError)
        if isinstance(error, fenced) or isinstance(error.__cause__, fenced) or "Fenced" in repr(error):
            raise Fenced(str(error)) from error
        raise error


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
            self._producer.send_offsets_to_transaction({AioTopicPartition(topic, partition): offset}, group)
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
                assigned = [AioTopicPartition(topic, number) for number in range(partitions)]
                consumer.assign(assigned)
                ends = await consumer.end_offsets(assigned)
                values: list[str] = []

                async def is_read(partition: AioTopicPartition) -> bool:
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


class Java:
    """A JVM that does what it is told line by line."""

    def __init__(self, bootstrap: str) -> None:
        classpath = jars.classpath("kafka")
        classes = java.compile_sources([SOURCE], "transactional-client", classpath)
        self._process = subprocess.Popen(
            java.command(
                "TransactionalClient",
                [bootstrap],
                classpath=f"{classes}:{classpath}",
                properties={"log4j2.configurationFile": LOG4J2.as_uri()},
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _do(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        outcome, _, rest = self._process.stdout.readline().rstrip("\n").partition(" ")
        if outcome == "ok":
            return rest
        if rest.startswith(("ProducerFenced", "InvalidProducerEpoch")):
            raise Fenced(rest)
        raise RuntimeError(rest or "the JVM ended")

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._do("init", transactional_id, timeout_ms)

    def begin(self) -> None:
        self._do("begin")

    def send(self, topic: str, partition: int, value: str) -> None:
        self._do("send", topic, partition, value)

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        self._do("offset", group, topic, partition, offset)

    def commit(self) -> None:
        self._do("commit")

    def abort(self) -> None:
        self._do("abort")

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        isolation = "read_committed" if committed else "read_uncommitted"
        return self._do("read", topic, partitions, isolation).split()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self


CLIENTS: dict[str, type[Client]] = {
    "confluent": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
    "java": Java,
}
