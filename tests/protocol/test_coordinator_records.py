"""Keys and values of Kafka's internal topics: as a real Apache Kafka 4.3.1 wrote them, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from declared_messages import COORDINATOR_RECORDS

from kbroker.protocol.codec import decode
from kbroker.protocol.coordinator_records import decode_value, encode_key, encode_value
from kbroker.protocol.message import schema_of

RECORDED = json.loads(Path(__file__).with_name("golden_coordinator_records.json").read_text())


def declared(kind, topic, record_type):
    of_transactions = topic == "__transaction_state"
    (found,) = [
        cls
        for cls in COORDINATOR_RECORDS
        if schema_of(cls).kind == kind
        and schema_of(cls).api_key == record_type
        and cls.__name__.startswith("TransactionLog") == of_transactions
    ]
    return found


@pytest.mark.parametrize("record", RECORDED, ids=lambda record: f"{record['topic']}-{record['key'][:4]}")
def test_what_kafka_wrote_is_understood_and_written_alike(record):
    key, value = bytes.fromhex(record["key"]), bytes.fromhex(record["value"])
    record_type = int.from_bytes(key[:2], "big")
    decoded, end = decode(declared("coordinator-key", record["topic"], record_type), 0, memoryview(key), 2)
    assert (end, encode_key(decoded)) == (len(key), key)
    read = decode_value(declared("coordinator-value", record["topic"], record_type), value)
    assert encode_value(read, int.from_bytes(value[:2], "big")) == value


def test_every_kind_of_record_is_among_them():
    recorded = {(record["topic"], int(record["key"][:4], 16)) for record in RECORDED}
    assert len(recorded) == len(COORDINATOR_RECORDS) // 2
