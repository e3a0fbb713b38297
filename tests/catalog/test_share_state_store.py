"""What the store of share partitions of every catalog keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kbroker.catalog.interface import Catalog
from kbroker.catalog.rows import TopicRow
from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange
from kbroker.coordinators.shares.store import ShareKey, ShareStateStore
from tests.handlers.conftest import ManualScheduler

from .conftest import Reopen

ORDERS, PARCELS = bytes(15) + b"\x01", bytes(15) + b"\x02"
KEY = ShareKey("grüppe", ORDERS, 2**31 - 1)
OTHER_PARTITION = KEY._replace(partition=0)
OTHER_TOPIC = KEY._replace(topic_id=PARCELS)
OTHER_GROUP = KEY._replace(group_id="another")
UNDECIDED = ShareState()
STATE = ShareState(
    2**62,
    (Run(2**62, 2**62 + 3, RecordState.ACKNOWLEDGED, 1), Run(2**62 + 4, 2**63 - 1, RecordState.AVAILABLE, 5)),
)
Open = Callable[[], ShareStateStore]


@pytest.fixture
def open_store(reopen: Reopen) -> Iterator[Open]:
    """The store, as after a restart."""
    opened: list[ShareStateStore] = []

    def open_again() -> ShareStateStore:
        while opened:
            opened.pop().close()
        catalog = reopen()
        make_topics(catalog)
        opened.append(catalog.share_state_store(ManualScheduler()))
        return opened[0]

    yield open_again
    while opened:
        opened.pop().close()


def make_topics(catalog: Catalog) -> None:
    if not catalog.snapshot().topics:
        for name, topic_id in ("orders", ORDERS), ("parcels", PARCELS):
            catalog.create_topic(TopicRow(name, topic_id, 1, 0), {}).result()


def test_states_are_kept(open_store: Open) -> None:
    open_store().put({KEY: STATE, OTHER_PARTITION: UNDECIDED}).result()
    assert open_store().load() == {KEY: STATE, OTHER_PARTITION: UNDECIDED}


def test_a_state_replaces_the_one_before_or_ends_it(open_store: Open) -> None:
    store = open_store()
    store.put({KEY: STATE, OTHER_PARTITION: STATE}).result()
    store.put({KEY: ShareState(7), OTHER_PARTITION: None, OTHER_GROUP: None}).result()
    assert open_store().load() == {KEY: ShareState(7)}


def test_changes_are_merged_into_states_in_their_order(open_store: Open) -> None:
    store = open_store()
    store.put({KEY: ShareState(0), OTHER_TOPIC: ShareState(5)}).result()
    acknowledged = Run(3, 6, RecordState.ACKNOWLEDGED, 1)
    store.write({KEY: ShareStateChange(0, (Run(0, 9, RecordState.AVAILABLE, 1),))}).result()
    store.write({KEY: ShareStateChange(2, (acknowledged,)), OTHER_TOPIC: ShareStateChange(9)}).result()
    available = RecordState.AVAILABLE
    expected = {
        KEY: ShareState(2, (Run(2, 2, available, 1), acknowledged, Run(7, 9, available, 1))),
        OTHER_TOPIC: ShareState(9),
    }
    assert open_store().load() == expected
    assert open_store().load() == expected


def test_a_state_that_is_put_after_changes_hides_them(open_store: Open) -> None:
    store = open_store()
    store.put({KEY: ShareState(0)}).result()
    store.write({KEY: ShareStateChange(4)}).result()
    store.put({KEY: ShareState(1)}).result()
    store.write({KEY: ShareStateChange(2)}).result()
    assert open_store().load() == {KEY: ShareState(2)}


def test_a_change_of_what_is_gone_changes_nothing(open_store: Open) -> None:
    store = open_store()
    store.put({KEY: STATE, OTHER_GROUP: STATE}).result()
    store.delete_group(KEY.group_id).result()
    store.write({KEY: ShareStateChange(4), OTHER_PARTITION: ShareStateChange(4)}).result()
    assert open_store().load() == {OTHER_GROUP: STATE}


def test_the_states_of_a_group_or_a_topic_are_deleted(open_store: Open) -> None:
    store = open_store()
    everything = (KEY, OTHER_PARTITION, OTHER_TOPIC, OTHER_GROUP)
    store.put(dict.fromkeys(everything, STATE)).result()
    store.write(dict.fromkeys(everything, ShareStateChange(2**62))).result()
    store.delete_topic(ORDERS).result()
    assert open_store().load() == {OTHER_TOPIC: STATE}
    store = open_store()
    store.load()
    store.put({OTHER_GROUP: STATE}).result()
    store.delete_group(KEY.group_id).result()
    assert open_store().load() == {OTHER_GROUP: STATE}


def test_states_of_topics_that_were_deleted_before_a_crash_are_gone(reopen: Reopen) -> None:
    catalog = reopen()
    make_topics(catalog)
    store = catalog.share_state_store(ManualScheduler())
    store.put({KEY: STATE, OTHER_TOPIC: STATE}).result()
    store.write({KEY: ShareStateChange(2**62), OTHER_TOPIC: ShareStateChange(2**62)}).result()
    catalog.delete_topic(ORDERS).result()
    store.close()
    for _ in range(2):
        catalog = reopen()
        assert catalog.snapshot().shares_stored
        store = catalog.share_state_store(ManualScheduler())
        assert store.load() == {OTHER_TOPIC: STATE}
        store.close()
    catalog = reopen()
    catalog.create_topic(TopicRow("orders", ORDERS, 1, 0), {}).result()
    store = catalog.share_state_store(ManualScheduler())
    assert store.load() == {OTHER_TOPIC: STATE}, "the topic may come back, the state does not"
    store.close()


def test_a_catalog_says_whether_share_partitions_are_stored(reopen: Reopen) -> None:
    assert not reopen().snapshot().shares_stored
    catalog = reopen()
    make_topics(catalog)
    assert not catalog.snapshot().shares_stored
    store = catalog.share_state_store(ManualScheduler())
    store.put({KEY: UNDECIDED}).result()
    store.close()
    assert reopen().snapshot().shares_stored


def test_a_store_that_is_opened_after_the_start_has_nothing_to_load(catalog: Catalog) -> None:
    catalog.snapshot()
    catalog.start(lambda callback: callback())
    store = catalog.share_state_store(ManualScheduler())
    assert store.load() == {}
    store.close()
