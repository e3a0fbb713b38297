from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from kbroker.operations.partitioning import RoundRobin, murmur2, partition_of_key
from kbroker.topics.registry import Topic


@given(st.binary(max_size=100))
def test_a_key_is_hashed_as_other_clients_do(key: bytes) -> None:
    assert murmur2(key) == kafka_python_murmur2(key) & 0xFFFFFFFF


@given(st.binary(max_size=100), st.integers(1, 1000))
def test_a_key_goes_to_the_partition_that_java_chooses(key: bytes, partitions: int) -> None:
    expected = (kafka_python_murmur2(key) & 0x7FFFFFFF) % partitions
    assert partition_of_key(key, partitions) == expected


def test_known_hashes_of_java() -> None:
    """From Kafka's own UtilsTest."""
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, hashed in known.items():
        assert murmur2(key) == hashed & 0xFFFFFFFF


def test_publishes_without_a_key_take_the_partitions_of_each_topic_in_turn() -> None:
    turns = RoundRobin()
    three, two = Topic("a", b"a" * 16, 3, 0, {}), Topic("b", b"b" * 16, 2, 0, {})
    assert [(turns.next_partition(three), turns.next_partition(two)) for _ in range(4)] == [
        (0, 0),
        (1, 1),
        (2, 0),
        (0, 1),
    ]
