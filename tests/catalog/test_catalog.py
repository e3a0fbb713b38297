"""What every catalog keeps, refuses and promises."""

from __future__ import annotations

import queue
from collections.abc import Callable

import pytest

from kbroker.catalog.errors import FactConflict, TopicConflict
from kbroker.catalog.interface import Catalog
from kbroker.catalog.rows import TOPIC, DeletedTopicRow, Snapshot, TopicRow
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.coordinators.transactions.transaction import Transaction
from kbroker.pending import Pending
from tests.handlers.conftest import ManualScheduler

from .conftest import Reopen

ORDERS = TopicRow("orders", b"o" * 16, 3, -2)
PAYMENTS = TopicRow("payments", b"p" * 16, 1, 0)
BROKER = 4


def conflict(write: Pending[None] | Pending[DeletedTopicRow]) -> TopicRow | None:
    with pytest.raises(TopicConflict) as conflict:
        write.result()
    return conflict.value.found


def test_a_new_catalog_has_nothing(catalog: Catalog) -> None:
    assert catalog.snapshot() == Snapshot({}, [], [], [], [], False, False)


# topics


def test_topics_and_their_configs_are_kept(reopen: Reopen) -> None:
    catalog = reopen()
    catalog.create_topic(ORDERS, {"retention.ms": "5", "cleanup.policy": "compact"}).result()
    catalog.create_topic(PAYMENTS, {}).result()
    stored = reopen().snapshot()
    assert sorted(stored.topics) == [ORDERS, PAYMENTS]
    assert sorted(stored.configs) == [
        (TOPIC, "orders", "cleanup.policy", "compact"),
        (TOPIC, "orders", "retention.ms", "5"),
    ]


@pytest.mark.parametrize("second", [PAYMENTS._replace(name="orders"), PAYMENTS._replace(topic_id=b"o" * 16)])
def test_of_two_topics_with_one_name_or_id_the_first_is_kept(reopen: Reopen, second: TopicRow) -> None:
    catalog = reopen()
    catalog.create_topic(ORDERS, {"retention.ms": "5"}).result()
    assert conflict(catalog.create_topic(second, {"retention.ms": "6", "segment.ms": "7"})) == ORDERS
    stored = reopen().snapshot()
    assert stored.topics == [ORDERS]
    assert stored.configs == [(TOPIC, "orders", "retention.ms", "5")]


def test_a_topic_grows_from_the_expected_number_of_partitions(reopen: Reopen) -> None:
    catalog = reopen()
    catalog.create_topic(ORDERS, {}).result()
    catalog.create_topic(PAYMENTS, {}).result()
    catalog.grow_topic(ORDERS.topic_id, 6, expected=3).result()
    assert conflict(catalog.grow_topic(ORDERS.topic_id, 5, expected=3)) == ORDERS._replace(partitions=6)
    assert sorted(reopen().snapshot().topics) == [ORDERS._replace(partitions=6), PAYMENTS]


def test_a_topic_that_is_gone_neither_grows_nor_is_deleted_again(catalog: Catalog) -> None:
    assert conflict(catalog.grow_topic(ORDERS.topic_id, 5, expected=3)) is None
    assert conflict(catalog.delete_topic(ORDERS.topic_id)) is None
    assert catalog.snapshot().deleted_topics == []


def test_a_deleted_topic_leaves_its_id_and_all_its_partitions_until_it_is_forgotten(reopen: Reopen) -> None:
    catalog = reopen()
    catalog.create_topic(ORDERS, {"retention.ms": "5"}).result()
    catalog.create_topic(PAYMENTS, {"retention.ms": "6"}).result()
    catalog.grow_topic(ORDERS.topic_id, 6, expected=3).result()
    deleted = DeletedTopicRow(ORDERS.topic_id, "orders", 6)
    assert catalog.delete_topic(ORDERS.topic_id).result() == deleted
    again = TopicRow("orders", b"n" * 16, 1, 0)
    catalog.create_topic(again, {}).result()
    catalog = reopen()
    stored = catalog.snapshot()
    assert sorted(stored.topics) == [again, PAYMENTS]
    assert stored.deleted_topics == [deleted]
    assert stored.configs == [(TOPIC, "payments", "retention.ms", "6")]
    catalog.forget_deleted_topic(ORDERS.topic_id).result()
    assert reopen().snapshot().deleted_topics == []


# configs, facts, producer ids


def test_configs_are_set_and_removed(reopen: Reopen) -> None:
    catalog = reopen()
    catalog.save_configs(BROKER, "", {"a": "1", "b": "2"}).result()
    catalog.save_configs(BROKER, "1", {"a": "3"}).result()
    catalog.save_configs(BROKER, "", {"a": None, "b": "4", "c": None}).result()
    catalog.save_configs(BROKER, "1", {"a": None}).result()
    assert reopen().snapshot().configs == [(BROKER, "", "b", "4")]


def test_entries_of_a_table_are_set_and_removed_together(reopen: Reopen) -> None:
    catalog = reopen()
    catalog.save_entries("users", {"alice": "1", "bob": "2"}).result()
    catalog.save_entries("quotas", {"alice": "3"}).result()
    catalog.save_entries("users", {"alice": None, "bob": "4", "carol": None}).result()
    assert sorted(reopen().snapshot().entries) == [("quotas", "alice", "3"), ("users", "bob", "4")]


def test_a_fact_is_saved_only_on_top_of_the_expected_one(reopen: Reopen) -> None:
    catalog = reopen()
    catalog.save_fact("colour", "blue", expected=None).result()
    catalog.save_fact("colour", "green", expected="blue").result()
    for expected in (None, "blue"):
        with pytest.raises(FactConflict) as conflict:
            catalog.save_fact("colour", "red", expected=expected).result()
        assert conflict.value.found == "green"
    with pytest.raises(FactConflict) as conflict:
        catalog.save_fact("shape", "round", expected="square").result()
    assert conflict.value.found is None
    assert reopen().snapshot().facts == {"colour": "green"}


def test_no_producer_id_is_reserved_twice(reopen: Reopen) -> None:
    catalog = reopen()
    assert catalog.reserve_producer_ids(1000).result() == range(1000)
    assert catalog.reserve_producer_ids(5).result() == range(1000, 1005)
    assert reopen().reserve_producer_ids(1).result() == range(1005, 1006)


# coordinators


def test_what_groups_and_transactions_store_is_loaded_and_announced(reopen: Reopen) -> None:
    catalog = reopen()
    partition, offset = TopicPartition("orders", 0), CommittedOffset(7, -1, "", 1)
    groups = catalog.group_store()
    groups.commit_offsets({"group": {partition: offset}}).result()
    groups.close()
    catalog = reopen()
    stored = catalog.snapshot()
    assert (stored.groups_stored, stored.transactions_stored) == (True, False)
    groups = catalog.group_store()
    assert groups.load().offsets == {"group": {partition: offset}}
    groups.close()
    transactions = catalog.transaction_store(ManualScheduler())
    transactions.save(Transaction("id", 1, 0, 60_000, 5)).result()
    transactions.close()
    catalog = reopen()
    assert catalog.snapshot().transactions_stored
    transactions = catalog.transaction_store(ManualScheduler())
    assert [each.transactional_id for each in transactions.load()] == ["id"]
    transactions.close()


def test_stores_that_are_opened_after_the_start_have_nothing_to_load(catalog: Catalog) -> None:
    catalog.snapshot()
    catalog.start(lambda callback: callback())
    groups, transactions = catalog.group_store(), catalog.transaction_store(ManualScheduler())
    assert groups.load().groups == []
    assert transactions.load() == []
    groups.close()
    transactions.close()


# results


def test_after_the_start_results_are_delivered_in_their_order(catalog: Catalog) -> None:
    delivered: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    catalog.start(delivered.put)
    before = catalog.commits
    created = catalog.create_topic(ORDERS, {})
    settled: list[str] = []
    created.then(lambda _: settled.append("created"))
    taken = catalog.create_topic(ORDERS._replace(topic_id=b"x" * 16), {})
    taken.then(lambda _: settled.append("taken"))
    catalog.save_configs(BROKER, "", {"a": "1"}).then(lambda _: settled.append("saved"))
    deleted = catalog.delete_topic(ORDERS.topic_id)
    deleted.then(lambda _: settled.append("deleted"))
    assert settled == []
    while not deleted.done:
        delivered.get(timeout=30)()
    assert settled == ["created", "taken", "saved", "deleted"]
    created.result()
    assert conflict(taken) == ORDERS
    assert deleted.result() == DeletedTopicRow(ORDERS.topic_id, "orders", 3)
    assert catalog.commits > before


def test_nobody_is_told_of_changes_that_this_broker_made(catalog: Catalog) -> None:
    told: list[object] = []
    catalog.on_change(told.append)
    catalog.create_topic(ORDERS, {}).result()
    catalog.save_fact("colour", "blue", expected=None).result()
    assert told == []
