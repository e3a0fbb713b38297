from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from kbroker.protocol.murmur2 import murmur2, partition_for_key
from tests.records.java_records import JavaRecords


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # Kafka's own UtilsTest
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_those_that_kafka_documents(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


@given(st.binary(max_size=200))
def test_hashes_are_those_of_kafka_python(key: bytes) -> None:
    assert murmur2(key) == kafka_python_murmur2(key)


@pytest.mark.java
def test_hashes_are_those_of_java(java_records: JavaRecords) -> None:
    for size in range(40):
        key = bytes((7 * size + 31 * n) % 256 for n in range(size))
        assert murmur2(key) == java_records.murmur2(key) & 0xFFFFFFFF


@given(st.binary(max_size=50), st.integers(1, 2**31 - 1))
def test_a_key_has_one_of_the_partitions(key: bytes, partition_count: int) -> None:
    assert 0 <= partition_for_key(key, partition_count) < partition_count


def test_a_key_has_the_partition_that_java_gives_it() -> None:
    assert partition_for_key(b"foobar", 10) == (-790332482 & 0x7FFFFFFF) % 10
