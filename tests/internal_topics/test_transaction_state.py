from __future__ import annotations

import pytest

from tests.transactions.broker_support import TransactionalClient

from .reader import TRANSACTIONS, Reader

EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 0, 1, 2, 4
WEEK_MS = 7 * 24 * 60 * 60 * 1000


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("t", partitions=2)


def statuses(records):
    return [None if read.value is None else read.value.transaction_status for read in records]


def test_a_transaction_is_read_as_it_stands(cluster):
    client = TransactionalClient(cluster, "tx")
    producer = client.init()
    client.add("t", 0, 1)
    (read,) = Reader(cluster, TRANSACTIONS).read()
    assert read.key.transactional_id == "tx"
    assert (read.value.producer_id, read.value.producer_epoch) == producer
    assert (read.value.transaction_status, read.value.transaction_timeout_ms) == (ONGOING, 60_000)
    (partitions,) = read.value.transaction_partitions
    assert (partitions.topic, partitions.partition_ids) == ("t", [0, 1])
    assert read.value.transaction_start_timestamp_ms == cluster.now_ms


def test_every_state_of_a_transaction_is_followed(cluster):
    reader = Reader(cluster, TRANSACTIONS)
    assert reader.read() == []
    client = TransactionalClient(cluster, "tx")
    client.init()
    client.add("t")
    client.end()
    records = reader.read()
    assert statuses(records) == [EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT]
    assert records[0].value.transaction_partitions is None
    assert records[-1].value.transaction_partitions == []


def test_offsets_in_a_transaction_stand_as_their_partition(cluster):
    client = TransactionalClient(cluster, "tx")
    client.init()
    client.add_offsets("g")
    (read,) = Reader(cluster, TRANSACTIONS).read()
    assert [each.topic for each in read.value.transaction_partitions] == ["__consumer_offsets"]


def test_a_transactional_id_that_expires_leaves_a_tombstone(cluster):
    TransactionalClient(cluster, "tx").init()
    reader = Reader(cluster, TRANSACTIONS)
    reader.read()
    cluster.now_ms += WEEK_MS
    cluster.broker.transactions.tick(cluster.now_ms)
    assert statuses(reader.read()) == [None]
