"""Two brokers on one catalog: of two that want the same, one gets it, and the other is told so."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pytest

from kbroker.broker import Broker
from kbroker.catalog.errors import CatalogFull
from kbroker.catalog.interface import Catalog
from kbroker.catalog.memory import MemoryCatalog
from kbroker.catalog.rows import CLUSTER_ID, FEATURES, UNCLEAN_STARTS
from kbroker.cluster.features import SAFE_DOWNGRADE, UPGRADE, FeatureUpdate
from kbroker.config.settings import Settings
from kbroker.network.budget import Budget
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.storage.memory import MemoryDirectory
from kbroker.storage.worker import InlineWorker
from kbroker.topics.registry import Topic
from tests.handlers.conftest import ManualScheduler


def start(
    catalog: Catalog, logs: MemoryDirectory | None = None, scheduler: ManualScheduler | None = None
) -> Broker:
    return Broker(
        Settings.load(flags={"node.id": "1"}),
        catalog,
        logs or MemoryDirectory(),
        worker=InlineWorker(),
        scheduler=scheduler or ManualScheduler(),
        budget=Budget(1 << 30),
        clock=lambda: 0,
    )


def both(catalog: Catalog) -> tuple[Broker, Broker, Topic, Topic]:
    """Brokers that both know a topic."""
    first = start(catalog)
    topic = first.topics.create("orders", 3, {}, 0).result()
    second = start(catalog)
    same = second.topics.get("orders")
    assert same is not None
    return first, second, topic, same


def refusal(result: Pending[Any]) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        result.result()
    return refused.value.code


def test_both_belong_to_the_cluster(catalog: Catalog) -> None:
    assert start(catalog).cluster.cluster_id == start(catalog).cluster.cluster_id


def test_a_name_is_taken_though_its_topic_is_not_known_here(catalog: Catalog) -> None:
    first, second = start(catalog), start(catalog)
    first.topics.create("orders", 3, {}, 0).result()
    assert refusal(second.topics.create("orders", 1, {}, 0)) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert not second.topics.is_reserved("orders")
    assert second.topics.get("orders") is None
    second.topics.check_new("or_ders")


def test_a_topic_that_the_other_made_is_not_made_by_looking_at_it(catalog: Catalog) -> None:
    first, second = start(catalog), start(catalog)
    first.auto_create("orders").result()
    looks = [second.auto_create("orders") for _ in range(2)]
    assert [refusal(look) for look in looks] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert len(catalog.snapshot().topics) == 1


def test_a_topic_grows_on_top_of_the_growth_of_the_other(catalog: Catalog) -> None:
    first, second, topic, same = both(catalog)
    first.topics.add_partitions(topic, 5).result()
    second.topics.add_partitions(same, 6).result()
    assert (same.partitions, second.topics.partition_count) == (6, 6)
    assert catalog.snapshot().topics[0].partitions == 6


@pytest.mark.parametrize("partitions", [4, 5])
def test_a_topic_that_the_other_grew_further_is_not_cut(catalog: Catalog, partitions: int) -> None:
    first, second, topic, same = both(catalog)
    first.topics.add_partitions(topic, 5).result()
    heard: list[bool] = []
    second.topics.on_change(lambda _, exists: heard.append(exists))
    assert refusal(second.topics.add_partitions(same, partitions)) is ErrorCode.INVALID_PARTITIONS
    assert (same.partitions, heard) == (5, [True])
    assert catalog.snapshot().topics[0].partitions == 5


def test_a_topic_that_the_other_deleted_is_unknown(catalog: Catalog) -> None:
    first, second, topic, same = both(catalog)
    first.topics.delete(topic).result()
    assert refusal(second.topics.add_partitions(same, 5)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    heard: list[bool] = []
    second.topics.on_change(lambda _, exists: heard.append(exists))
    assert refusal(second.topics.delete(same)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert second.topics.get("orders") is None
    assert heard == [False]


def test_the_files_of_all_partitions_go_also_of_those_that_the_other_added(catalog: Catalog) -> None:
    first, second, topic, same = both(catalog)
    first.topics.add_partitions(topic, 5).result()
    assert second.topics.delete(same).result().partitions == 5


def test_of_two_growths_on_one_broker_that_overlap_the_larger_one_stays(catalog: Catalog) -> None:
    broker = start(catalog)
    topic = broker.topics.create("orders", 3, {}, 0).result()
    delivered: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    catalog.start(delivered.put)
    larger, smaller, largest = (broker.topics.add_partitions(topic, count) for count in (6, 5, 7))
    while not (smaller.done and largest.done):
        delivered.get(timeout=30)()
    assert larger.result().partitions == largest.result().partitions == 7
    assert refusal(smaller) is ErrorCode.INVALID_PARTITIONS
    assert (topic.partitions, broker.topics.partition_count) == (7, 7)


def test_no_producer_id_is_given_out_twice(catalog: Catalog) -> None:
    first, second = start(catalog), start(catalog)
    given = [_now(broker.producer_ids.allocate()) for _ in range(2500) for broker in (first, second)]
    assert len(set(given)) == 5000


def test_the_epoch_of_features_goes_on_from_that_of_the_other(catalog: Catalog) -> None:
    first, second = start(catalog), start(catalog)
    assert _now(first.features.apply([FeatureUpdate("group.version", 0, SAFE_DOWNGRADE)])) == 1
    assert _now(second.features.apply([FeatureUpdate("transaction.version", 1, SAFE_DOWNGRADE)])) == 2
    assert second.features.level("group.version") == 0
    third = start(catalog)
    assert third.features.finalized() == second.features.finalized()
    assert third.features.epoch == 2


def test_a_level_that_the_other_changed_is_checked_again(catalog: Catalog) -> None:
    first, second = start(catalog), start(catalog)
    _now(first.features.apply([FeatureUpdate("transaction.version", 0, SAFE_DOWNGRADE)]))
    downgrade = second.features.apply([FeatureUpdate("transaction.version", 1, SAFE_DOWNGRADE)])
    assert isinstance(downgrade, Pending)
    assert refusal(downgrade) is ErrorCode.INVALID_UPDATE_VERSION
    assert _now(second.features.apply([FeatureUpdate("transaction.version", 1, UPGRADE)])) == 2


def test_an_update_of_features_that_was_not_stored_is_not_part_of_the_next() -> None:
    catalog = FullOnce(FEATURES)
    broker = start(catalog)
    delivered: list[Callable[[], None]] = []
    catalog.start(delivered.append)
    first = broker.features.apply([FeatureUpdate("group.version", 0, SAFE_DOWNGRADE)])
    second = broker.features.apply([FeatureUpdate("transaction.version", 1, SAFE_DOWNGRADE)])
    while delivered:
        delivered.pop(0)()
    with pytest.raises(CatalogFull):
        _now(first)
    assert _now(second) == 1
    assert (broker.features.level("group.version"), broker.features.level("transaction.version")) == (1, 1)


def test_an_update_of_features_whose_client_is_gone_holds_up_no_other() -> None:
    catalog = MemoryCatalog()
    broker = start(catalog)
    delivered: list[Callable[[], None]] = []
    catalog.start(delivered.append)
    first, second, third = (
        broker.features.apply([FeatureUpdate("transaction.version", level, kind)])
        for level, kind in ((1, SAFE_DOWNGRADE), (2, SAFE_DOWNGRADE), (0, SAFE_DOWNGRADE))
    )
    assert isinstance(first, Pending)
    assert isinstance(second, Pending)
    first.abandon()
    while delivered:
        delivered.pop(0)()
    assert refusal(second) is ErrorCode.INVALID_UPDATE_VERSION
    assert _now(third) == 2
    assert broker.features.level("transaction.version") == 0


class Interrupted(MemoryCatalog):
    """Another broker does something just before a fact is saved, the first time."""

    def __init__(self, name: str, *interrupts: Callable[[Catalog], None]) -> None:
        super().__init__()
        self.name = name
        self.interrupts = list(interrupts)

    def save_fact(self, name: str, value: str, *, expected: str | None) -> Pending[None]:
        if name == self.name and self.interrupts:
            self.interrupts.pop()(self)
        return super().save_fact(name, value, expected=expected)


def test_of_two_cluster_ids_the_first_one_counts() -> None:
    other = Interrupted(CLUSTER_ID, lambda catalog: _now(catalog.save_fact(CLUSTER_ID, "x", expected=None)))
    assert start(other).cluster.cluster_id == "x"


def _count_one(catalog: Catalog) -> None:
    found = catalog.snapshot().facts.get(UNCLEAN_STARTS)
    catalog.save_fact(UNCLEAN_STARTS, str(int(found or 0) + 1), expected=found).result()


def test_two_unclean_starts_at_a_time_are_two() -> None:
    catalog = Interrupted(UNCLEAN_STARTS, _count_one)
    assert start(catalog, UncleanDirectory()).cluster.unclean_starts == 2
    assert catalog.snapshot().facts[UNCLEAN_STARTS] == "2"
    assert start(catalog, UncleanDirectory()).cluster.unclean_starts == 3


class UncleanDirectory(MemoryDirectory):
    clean_start = False


class FullOnce(Interrupted):
    """There is no room for the fact the first time; then somebody may interrupt."""

    full = True

    def save_fact(self, name: str, value: str, *, expected: str | None) -> Pending[None]:
        if name == self.name and self.full:
            self.full = False
            return self._failed(CatalogFull("no room"))
        return super().save_fact(name, value, expected=expected)


def test_an_unclean_start_that_is_counted_late_gives_the_logs_its_epoch() -> None:
    catalog = FullOnce(UNCLEAN_STARTS, _count_one)
    scheduler = ManualScheduler()
    broker = start(catalog, UncleanDirectory(), scheduler)
    topic = broker.topics.create("orders", 1, {}, 0).result()
    log = broker.log(topic, 0)
    assert (broker.cluster.unclean_starts, log.leader_epoch) == (1, 1)
    (retry,) = scheduler.waiting
    retry()
    assert (broker.cluster.unclean_starts, log.leader_epoch) == (2, 2)
    assert catalog.snapshot().facts[UNCLEAN_STARTS] == "2"


def _now(result: Any) -> Any:
    return result.result() if isinstance(result, Pending) else result
