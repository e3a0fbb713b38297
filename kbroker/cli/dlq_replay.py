"""Sending dead letters back to where they came from, each at most once.

Some letters at a time are sent back in one transaction, together with the ledger's record of it (dlq_ledger).
Killed anywhere, the command has sent a letter and told the ledger, or neither. Another one that begins takes
over the transactional id before it reads the ledger: what the first had not committed by then never is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from kbroker.cli import connection
from kbroker.cli.dlq_ledger import Ledger, ledger_topic, make_ledger, read_ledger
from kbroker.cli.dlq_letters import DeadLetter, partitions_of, read, reader, starts_of, wanted
from kbroker.cli.errors import refused
from kbroker.cli.output import note, plural, print_json, say
from kbroker.exit_codes import FAILED, OK, CommandFailed

TRANSACTIONAL_ID = "kbroker-dlq-replay-"
_AT_ONCE = 500  # letters of one transaction
_SHOWN = 10  # letters that could not be sent
# MESSAGE_TOO_LARGE, TOPIC_AUTHORIZATION_FAILED, INVALID_TIMESTAMP, POLICY_VIOLATION, INVALID_RECORD
_REFUSALS = (10, 29, 32, 44, 87)


class _Target(NamedTuple):
    topic: str
    partition: int | None
    """None: the key decides."""


class _Unsendable(Exception):
    """Why a letter cannot go back."""


def replay(arguments: argparse.Namespace) -> int:
    with ExitStack() as stack:
        client = stack.enter_context(connection.admin(arguments))
        (topic,) = connection.topic_metadata(client, [arguments.topic])
        consumer = stack.enter_context(reader(arguments))
        producer = None
        if not arguments.dry_run:
            make_ledger(client, arguments.topic)
            producer = stack.enter_context(_producer(arguments))
            producer.init_transactions()
        run = _Replay(arguments, stack, consumer, str(topic.get("topic_id", "")))
        try:
            for letters in run.batches():
                if producer is not None:
                    run.send(producer, letters)
        except connection.kafka().errors.KafkaError as error:
            if not _fenced(error):
                raise
            raise CommandFailed(
                f"another replay of {arguments.topic} has begun: this one stops after "
                f"{plural(sum(run.sent.values()), 'record')}. Nothing is sent twice"
            ) from None
    return run.report()


def _fenced(error: BaseException) -> bool:
    """Whether another has taken over the transactional id.

    kafka-python raises that as it is, or says it in the text of another error: the thread that sends may
    learn it between any two calls.
    """
    errors = connection.kafka().errors
    fencing = (errors.ProducerFencedError, errors.InvalidProducerEpochError)
    return isinstance(error, fencing) or any(each.__name__ in str(error) for each in fencing)


def _producer(arguments: argparse.Namespace) -> Any:
    from kbroker.cli.record_serializer import RecordSerializer

    return connection.producer(
        arguments,
        acks="all",
        transactional_id=TRANSACTIONAL_ID + arguments.topic,
        max_request_size=2**30,
        linger_ms=5,
        value_serializer=RecordSerializer(),
    )


class _Replay:
    def __init__(self, arguments: argparse.Namespace, stack: ExitStack, consumer: Any, topic_id: str) -> None:
        self._arguments = arguments
        self._stack = stack
        self._consumer = consumer
        self._ledger: Ledger = read_ledger(consumer, arguments.topic, topic_id)
        self._originals: Any = None  # another consumer, if records have to be looked up
        self._partitions: dict[str, set[int]] = {}
        self._started = time.monotonic()
        self.sent: dict[str, int] = {}
        """By topic; in a dry run: what would be."""
        self.skipped: list[dict[str, Any]] = []

    def batches(self) -> Iterator[list[tuple[DeadLetter, _Target]]]:
        arguments = self._arguments
        most = min(_AT_ONCE, max(1, (arguments.rate or 4 * _AT_ONCE) // 4))
        batch = []
        left = arguments.limit
        for found in self._letters():
            if left is not None and left <= 0:
                break
            try:
                sendable = self._sendable(found)
            except _Unsendable as why:
                place = {"partition": found.record.partition, "offset": found.record.offset}
                self.skipped.append({**place, "why": str(why)})
                continue
            left = None if left is None else left - 1
            batch.append(sendable)
            if len(batch) == most:
                yield self._paced(batch)
                batch = []
        if batch:
            yield self._paced(batch)

    def _letters(self) -> Iterator[DeadLetter]:
        arguments = self._arguments
        partitions = partitions_of(self._consumer, arguments.topic, arguments.partition)
        starts = starts_of(self._consumer, partitions, arguments)
        begins = self._consumer.beginning_offsets(partitions)
        for partition in partitions:
            at = max(starts[partition], begins[partition])
            starts[partition] = self._ledger.first_missing(partition.partition, at)
        for found in read(self._consumer, partitions, starts):
            if not self._ledger.has(found.record.partition, found.record.offset) and wanted(arguments, found):
                yield found

    def _paced(self, batch: list[tuple[DeadLetter, _Target]]) -> list[tuple[DeadLetter, _Target]]:
        for _, target in batch:
            self.sent[target.topic] = self.sent.get(target.topic, 0) + 1
        arguments = self._arguments
        if arguments.rate and not arguments.dry_run:
            due = self._started + (sum(self.sent.values()) - len(batch)) / arguments.rate
            time.sleep(max(0.0, due - time.monotonic()))
        return batch

    def _sendable(self, found: DeadLetter) -> tuple[DeadLetter, _Target]:
        record, origin, _ = found
        arguments = self._arguments
        topic = arguments.to or (origin.topic if origin is not None else None)
        if topic is None:
            raise _Unsendable("its headers do not tell where it came from: --to TOPIC sends it to another")
        known = self._known_partitions(topic)
        if not known:
            raise _Unsendable(
                f"there is no topic {topic}, or none that you may see: --to TOPIC sends it to another"
            )
        partition = None
        if not arguments.to and not arguments.by_key and origin is not None and origin.partition is not None:
            partition = origin.partition
            if partition not in known:
                raise _Unsendable(f"topic {topic} has no partition {partition}: --by-key lets the key decide")
        if record.key is None and record.value is None and origin is not None and origin.kind == "share":
            return self._looked_up(found), _Target(topic, partition)
        return found, _Target(topic, partition)

    def _known_partitions(self, topic: str) -> set[int]:
        if topic not in self._partitions:
            self._partitions[topic] = self._consumer.partitions_for_topic(topic) or set()
        return self._partitions[topic]

    def _looked_up(self, found: DeadLetter) -> DeadLetter:
        """A share group that does not copy records leaves only headers: the record is where it was."""
        origin = found.origin
        assert origin is not None
        if origin.topic is None or origin.partition not in self._known_partitions(origin.topic):
            raise _Unsendable("the record was not copied, and its topic is gone")
        if self._originals is None:
            self._originals = self._stack.enter_context(reader(self._arguments))
        partition = connection.kafka().TopicPartition(origin.topic, origin.partition)
        for each in read(self._originals, [partition], {partition: origin.offset or 0}):
            if each.record.offset == origin.offset:
                original = each.record
                record = found.record._replace(key=original.key, value=original.value)
                return DeadLetter(record, origin, original.headers)
            break
        raise _Unsendable(f"the record was not copied, and {origin.place} is gone")

    def send(self, producer: Any, letters: list[tuple[DeadLetter, _Target]]) -> None:
        """All of them and the ledger's records, or nothing."""
        topics = []
        futures: list[Any] = []

        def send(target: _Target, key: bytes | None, value: bytes | None, headers: Any) -> None:
            topics.append(target.topic)
            futures.append(self._sent(producer, target, key, value, headers))

        producer.begin_transaction()
        try:
            for found, target in letters:
                send(target, found.record.key, found.record.value, found.headers)
            marked = {self._ledger.mark(each.record.partition, each.record.offset) for each, _ in letters}
            for each in sorted(marked):
                send(_Target(ledger_topic(self._arguments.topic), 0), *self._ledger.record(each), ())
            producer.flush()
            for future in futures:
                future.get(self._arguments.timeout)
            producer.commit_transaction()
        except BaseException:
            with suppress(Exception):
                producer.abort_transaction()
            # What the producer raises says only that something went wrong before: a future knows what.
            for topic, future in zip(topics, futures, strict=False):
                code = getattr(future.exception, "errno", None) if future.failed() else None
                if code in _REFUSALS:
                    raise refused(f"nothing more is sent: topic {topic}", code) from None
            raise

    def _sent(
        self, producer: Any, target: _Target, key: bytes | None, value: bytes | None, headers: Any
    ) -> Any:
        from kbroker.cli.record_serializer import Headers

        return producer.send(
            target.topic, (value, list(headers)), key, headers=Headers(), partition=target.partition
        )

    def report(self) -> int:
        arguments = self._arguments
        if arguments.json:
            print_json(
                {
                    "topic": arguments.topic,
                    "dry_run": arguments.dry_run,
                    "sent": [{"topic": topic, "records": number} for topic, number in self.sent.items()],
                    "not_sent": self.skipped,
                }
            )
            return FAILED if self.skipped else OK
        verb = "would be sent" if arguments.dry_run else "sent"
        for topic, number in self.sent.items():
            say(f"{plural(number, 'record')} {verb} to {topic}")
        if not self.sent and not self.skipped:
            note(f"nothing in {arguments.topic} is left to be sent back")
        for each in self.skipped[:_SHOWN]:
            note(f"kbroker: {arguments.topic}-{each['partition']}@{each['offset']} not sent: {each['why']}")
        if len(self.skipped) > _SHOWN:
            note(f"kbroker: {plural(len(self.skipped) - _SHOWN, 'more record')} not sent: see --json")
        return FAILED if self.skipped else OK
