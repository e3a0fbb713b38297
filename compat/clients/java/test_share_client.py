"""Java's KafkaShareConsumer in a small program of our own: what an application can tell it, and is told."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat.harness.batches import Record, batch
from compat.harness.brokers import Server
from compat.harness.java_program import JavaError, JavaProgram
from compat.harness.raw_producer import RawProducer, find_coordinators
from compat.harness.side import Side
from compat.harness.waiting import eventually

pytestmark = pytest.mark.java
SOURCE = Path(__file__).with_name("ShareClient.java")
GROUP_CONFIGS = 32
EXPLICIT = {"share.acknowledgement.mode": "explicit"}
POLL_MS = 500
LOCK_MS = 2000


class Delivered(NamedTuple):
    offset: int
    value: str
    count: int


class Consumer:
    """One KafkaShareConsumer."""

    _numbers = itertools.count()

    def __init__(self, jvm: JavaProgram, topic: str, settings: dict[str, str]) -> None:
        self._jvm = jvm
        self._name = f"consumer-{next(self._numbers)}"
        self.is_open = True
        jvm.do("open", self._name, topic, *(f"{name}={value}" for name, value in settings.items()))

    def poll(self, milliseconds: int = POLL_MS) -> list[Delivered]:
        records = (each.split(":") for each in self._jvm.do("poll", self._name, milliseconds).split())
        return [Delivered(int(offset), value, int(count)) for offset, value, count in records]

    def poll_until_some(self) -> list[Delivered]:
        return eventually(self.poll, seconds=40)

    def poll_all(self, count: int) -> list[Delivered]:
        """Implicitly acknowledged ones: poll after poll."""
        got: list[Delivered] = []
        eventually(lambda: got.extend(self.poll()), lambda _: len(got) >= count, seconds=40)
        return got

    def acknowledge(self, kind: str, *offsets: int) -> None:
        for offset in offsets:
            self._jvm.do("acknowledge", self._name, offset, kind)

    def commit(self) -> str:
        """PARTITION:RESULT of each."""
        return self._jvm.do("commit", self._name)

    def commit_later(self) -> None:
        self._jvm.do("commit_later", self._name)

    def callbacks(self) -> dict[str, list[int]]:
        """What the callback was told since it was asked last: offsets by result."""
        told = (each.split(":") for each in self._jvm.do("callbacks", self._name).split())
        return {result: [int(offset) for offset in offsets.split(",")] for result, offsets in told}

    def lock_timeout(self) -> str:
        return self._jvm.do("lock_timeout", self._name)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._jvm.do("close", self._name)


@pytest.fixture(scope="module")
def jvm() -> Iterator[JavaProgram]:
    jvm = JavaProgram(SOURCE)
    yield jvm
    jvm.end()


@pytest.fixture
def side(kafka_server: Server) -> Iterator[Side]:
    side = Side(kafka_server)
    find_coordinators(side)
    yield side
    side.disconnect()


@pytest.fixture
def queue(side: Side, topic: str) -> Callable[..., None]:
    """queue(3, 2): a topic of one partition, with values by offset, in batches of these sizes"""
    side.create_topic(topic)
    values = itertools.count()

    def append(*sizes: int) -> None:
        for size in sizes:
            records = [Record(b"%d" % next(values)) for _ in range(size)]
            assert side.produce(topic, batch(records))["ErrorCode"] == 0

    return append


@pytest.fixture
def configure(side: Side, group: str) -> Callable[..., None]:
    """configure(share_isolation_level=…): configs of the share group, which begins at the start"""

    def configure(**configs: str) -> None:
        altered = [
            {"Name": name.replace("_", "."), "ConfigOperation": 0, "Value": value}
            for name, value in configs.items()
        ]
        resource = {"ResourceType": GROUP_CONFIGS, "ResourceName": group, "Configs": altered}
        (answer,) = side.raw("IncrementalAlterConfigs", 1, {"Resources": [resource]})["Responses"]
        assert answer["ErrorCode"] == 0, answer

    configure(share_auto_offset_reset="earliest")
    return configure


@pytest.fixture
def join(
    jvm: JavaProgram, kafka_server: Server, topic: str, group: str, configure: Callable[..., None]
) -> Iterator[Callable[..., Consumer]]:
    """join(settings): another share consumer of the group"""
    joined: list[Consumer] = []

    def join(**settings: str) -> Consumer:
        fixed = {"bootstrap.servers": kafka_server.bootstrap, "group.id": group}
        named = {name.replace("_", "."): value for name, value in settings.items()}
        joined.append(Consumer(jvm, topic, fixed | EXPLICIT | named))
        return joined[-1]

    yield join
    for consumer in joined:
        consumer.close()


@pytest.fixture
def join_together(side: Side, group: str, join: Callable[..., Consumer]) -> Callable[..., list[Consumer]]:
    """join_together(settings): two share consumers of the group, which both have its partition"""

    def join_together(**settings: str) -> list[Consumer]:
        consumers = [join(**settings) for _ in range(2)]

        def assigned() -> list[int]:
            for each in consumers:
                assert each.poll(50) == []
            (described,) = side.raw("ShareGroupDescribe", 1, {"GroupIds": [group]})["Groups"]
            return [len(each["Assignment"]["TopicPartitions"]) for each in described["Members"]]

        eventually(assigned, lambda found: found == [1, 1], seconds=40)
        return consumers

    return join_together


def in_one_hand(
    queue: Callable[..., None], join_together: Callable[..., list[Consumer]], number: int
) -> tuple[Consumer, Consumer, list[Delivered]]:
    """So many records with one of two consumers: who has them, the other one, the records."""
    holder, other = join_together()
    queue(number)
    while not (got := holder.poll(50)):
        holder, other = other, holder
    return holder, other, got


def offsets(records: list[Delivered]) -> list[int]:
    return [each.offset for each in records]


def counts(records: list[Delivered]) -> dict[int, int]:
    return {each.offset: each.count for each in records}


def test_each_record_is_acknowledged_in_its_own_way(queue, join):
    queue(5, 5)
    one = join()
    got = one.poll_until_some()
    assert got == [(offset, str(offset), 1) for offset in range(10)]
    one.acknowledge("ACCEPT", 0, 1, 9)
    one.acknowledge("RELEASE", 2, 3, 7)
    one.acknowledge("REJECT", 4, 5, 6, 8)
    assert one.commit() == "0:done"
    again = one.poll_until_some()
    assert counts(again) == {2: 2, 3: 2, 7: 2}
    one.acknowledge("ACCEPT", *offsets(again))
    assert one.commit() == "0:done"
    assert one.poll() == []


def test_acknowledgements_ride_on_the_next_poll(queue, join):
    queue(4)
    one = join()
    one.acknowledge("RELEASE", *offsets(one.poll_until_some()))
    queue(2)
    got: list[Delivered] = []
    while len(got) < 6:
        some = one.poll_until_some()
        one.acknowledge("ACCEPT", *offsets(some))
        got += some
    assert sorted(got) == [(offset, str(offset), 2 if offset < 4 else 1) for offset in range(6)]


def test_an_unacknowledged_record_forbids_the_next_poll(queue, join):
    queue(2)
    one = join()
    one.poll_until_some()
    one.acknowledge("ACCEPT", 0)
    with pytest.raises(JavaError, match="IllegalStateException"):
        one.poll()
    one.acknowledge("ACCEPT", 1)
    assert one.commit() == "0:done"


def test_implicit_acknowledgement(queue, join):
    queue(3, 3)
    one = join(share_acknowledgement_mode="implicit")
    assert offsets(one.poll_all(6)) == list(range(6))
    assert one.commit() == "0:done"
    one.close()
    assert join().poll(2_000) == []


def test_the_callback_is_told(queue, join):
    queue(4)
    one = join()
    one.poll_until_some()
    one.acknowledge("ACCEPT", 0, 1)
    one.acknowledge("REJECT", 2, 3)
    one.commit_later()
    told: dict[str, list[int]] = {}
    eventually(lambda: one.poll(100) or told.update(one.callbacks()), lambda _: bool(told))
    assert told == {"done": [0, 1, 2, 3]}


def test_a_lock_that_has_run_out_is_told(queue, configure, join_together):
    configure(share_record_lock_duration_ms=str(LOCK_MS))
    holder, other, got = in_one_hand(queue, join_together, 3)
    assert counts(got) == {0: 1, 1: 1, 2: 1}
    assert holder.lock_timeout() == str(LOCK_MS)
    again = other.poll_until_some()
    assert offsets(again) == [0, 1, 2]
    assert min(counts(again).values()) >= 2  # a fetch ahead of the holder may have got them meanwhile
    holder.acknowledge("ACCEPT", 0, 1, 2)
    assert holder.commit() == "0:InvalidRecordStateException"
    assert holder.callbacks() == {"InvalidRecordStateException": [0, 1, 2]}
    other.acknowledge("ACCEPT", 0, 1, 2)
    assert other.commit() == "0:done"


def test_a_lock_that_is_renewed_holds_on(queue, configure, join_together):
    configure(share_record_lock_duration_ms=str(LOCK_MS))
    holder, other, got = in_one_hand(queue, join_together, 2)
    assert counts(got) == {0: 1, 1: 1}
    end = time.monotonic() + 2 * LOCK_MS / 1000
    while time.monotonic() < end:
        holder.acknowledge("RENEW", 0, 1)
        assert holder.commit() == "0:done"
        assert counts(holder.poll_until_some()) == {0: 1, 1: 1}  # what is renewed is to be acknowledged anew
        assert other.poll(50) == []
    holder.acknowledge("ACCEPT", 0)
    holder.acknowledge("RELEASE", 1)
    assert holder.commit() == "0:done"
    while not (again := other.poll(50)):
        assert holder.poll(50) == []
    assert counts(again) == {1: 2}
    other.acknowledge("ACCEPT", 1)
    assert other.commit() == "0:done"


def test_a_limit_of_records_is_kept_in_its_mode(queue, join):
    queue(10, 10)
    one = join(share_acquire_mode="record_limit", max_poll_records="3")
    got: list[int] = []
    while len(got) < 20:
        some = offsets(one.poll_until_some())
        assert len(some) <= 3
        one.acknowledge("ACCEPT", *some)
        got += some
    assert one.commit() == "0:done"
    assert got == list(range(20))


def test_batches_stay_whole_in_the_other_mode(queue, join):
    queue(10, 10)
    one = join(max_poll_records="3")
    assert offsets(one.poll_until_some()) == list(range(10))
    one.acknowledge("ACCEPT", *range(10))
    assert one.commit() == "0:done"


def test_records_come_until_their_limit_of_deliveries(queue, configure, join):
    configure(share_delivery_count_limit="3")
    queue(2)
    one = join()
    seen: list[tuple[int, int]] = []
    for _ in range(6):
        got = one.poll_until_some() if len(seen) < 6 else one.poll()
        seen += [(each.offset, each.count) for each in got]
        one.acknowledge("RELEASE", *offsets(got))
        one.commit()
        if len(seen) == 6:
            break
    assert sorted(seen) == [(offset, count) for offset in (0, 1) for count in (1, 2, 3)]
    assert one.poll(1_000) == []


def test_what_a_consumer_holds_is_released_when_it_closes(queue, join):
    queue(5)
    one = join()
    one.poll_until_some()
    one.acknowledge("ACCEPT", 0, 1)
    two = join()
    one.close()
    began = time.monotonic()
    assert counts(two.poll_until_some()) == {2: 2, 3: 2, 4: 2}
    assert time.monotonic() - began < 25  # the lock takes 30 s
    two.acknowledge("ACCEPT", 2, 3, 4)
    assert two.commit() == "0:done"


def test_two_members_share_one_partition(queue, join_together):
    consumers = join_together(share_acquire_mode="record_limit", max_poll_records="5")
    queue(*[10] * 10)
    got: dict[Consumer, list[int]] = {each: [] for each in consumers}
    while sum(map(len, got.values())) < 100:
        for consumer, seen in got.items():
            some = offsets(consumer.poll(100))
            consumer.acknowledge("ACCEPT", *some)
            seen += some
    assert sorted(itertools.chain(*got.values())) == list(range(100))
    assert all(got.values())
    assert {each.commit() for each in consumers} <= {"0:done", ""}


def test_aborted_records_are_not_delivered_to_who_reads_committed(side, queue, configure, join, topic):
    configure(share_isolation_level="read_committed")
    queue(2)
    producer = RawProducer(side, f"txn-{topic}")
    producer.init()
    for number, commit in enumerate((False, True, False)):
        producer.add(topic, 0)
        producer.produce(topic, b"transaction-%d" % number)
        producer.end(commit=commit)
    queue(1)
    one = join()
    got: list[Delivered] = []
    while len(got) < 4:
        some = one.poll_until_some()
        one.acknowledge("ACCEPT", *offsets(some))
        got += some
    assert got == [(0, "0", 1), (1, "1", 1), (4, "transaction-1", 1), (8, "2", 1)]
    assert one.commit() == "0:done"
    assert one.poll() == []
