"""Batches against the record code of kafka-python and aiokafka, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import kafka.record.default_records as kafka_records
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.protocol.records import (
    Record,
    build_batch,
    iter_records,
    read_header,
    validate_batch,
)
from tests.records.record_strategies import CODECS, at_offsets, record_lists, timed_record_lists

kafka_python = kafka_records.DefaultRecordBatchBuilder, kafka_records.DefaultRecordBatch
aiokafka = aiokafka_records.DefaultRecordBatchBuilder, aiokafka_records.DefaultRecordBatch
aiokafka_python = aiokafka_records._DefaultRecordBatchBuilderPy, aiokafka_records._DefaultRecordBatchPy
clients = pytest.mark.parametrize(
    ("builder", "reader"),
    [kafka_python, aiokafka, aiokafka_python],
    ids=["kafka-python", "aiokafka", "aiokafka-py"],
)


def built(builder: Callable[..., Any], records: Iterable[Record], codec: int = 0, **producer: Any) -> bytes:
    settings = {
        "is_transactional": 0,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        **producer,
    }
    batch = builder(magic=2, compression_type=codec, batch_size=1 << 24, **settings)
    for offset, record in enumerate(records):
        batch.append(
            offset=offset,
            timestamp=record.timestamp,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
        )
    return bytes(batch.build())


def read(reader: Callable[[bytes], Any], batch: bytes) -> list[Record]:
    return [
        Record(record.timestamp, record.key, record.value, tuple(map(tuple, record.headers)), record.offset)
        for record in reader(batch)
    ]


@clients
@given(records=timed_record_lists, producer=st.booleans())
def test_uncompressed_batches_are_byte_for_byte_the_same(
    builder: Any, reader: Any, records: list[Record], producer: bool
) -> None:
    state = {"producer_id": 12, "producer_epoch": 3, "base_sequence": 4} if producer else {}
    theirs = built(builder, records, is_transactional=int(producer), **state)
    epoch = read_header(theirs).partition_leader_epoch  # the broker's to set
    assert build_batch(records, transactional=producer, leader_epoch=epoch, **state) == theirs


@clients
@given(records=record_lists, codec=st.sampled_from(CODECS))
def test_clients_read_what_we_build(builder: Any, reader: Any, records: list[Record], codec: int) -> None:
    batch = build_batch(records, codec=codec)
    assert reader(batch).validate_crc()
    assert read(reader, batch) == [record._replace(offset_delta=0) for record in at_offsets(records)]


@clients
@given(records=timed_record_lists, codec=st.sampled_from(CODECS))
def test_we_read_what_clients_build(builder: Any, reader: Any, records: list[Record], codec: int) -> None:
    batch = built(builder, records, codec)
    validate_batch(batch)
    assert list(iter_records(batch)) == at_offsets(records)
