"""Quotas altered by several requests at once, on a catalog that takes its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.quotas.entities import entity_of
from kbroker.quotas.table import Alteration, QuotaTable
from kbroker.requests.long_requests import LongRequests
from tests.handlers.conftest import ManualScheduler

ALICE = entity_of([("user", "alice")])


class SlowCatalog:
    def __init__(self) -> None:
        self.writes: list[tuple[Mapping[str, str | None], Pending[None]]] = []

    def save_entries(self, table: str, changes: Mapping[str, str | None]) -> Pending[None]:
        self.writes.append((changes, Pending()))
        return self.writes[-1][1]


@pytest.fixture
def catalog() -> SlowCatalog:
    return SlowCatalog()


@pytest.fixture
def table(catalog: SlowCatalog) -> QuotaTable:
    return QuotaTable(catalog, ())  # type: ignore[arg-type]  # as far as it is asked


def alter(table: QuotaTable, **values: float | None) -> Any:
    steps = table.alter([Alteration(ALICE, list(values.items()))], validate_only=False)
    return LongRequests(ManualScheduler()).run(steps)


def test_an_alteration_is_in_force_when_it_is_stored(table: QuotaTable, catalog: SlowCatalog) -> None:
    altered = alter(table, producer_byte_rate=1)
    assert dict(table.items()) == {}
    catalog.writes[0][1].resolve(None)
    assert altered.result() == {ALICE: None}
    assert dict(table.items()) == {ALICE: {"producer_byte_rate": 1}}


def test_alterations_at_once_are_made_one_after_the_other(table: QuotaTable, catalog: SlowCatalog) -> None:
    answers = [alter(table, producer_byte_rate=1), alter(table, consumer_byte_rate=2), alter(table, bytes=3)]
    assert len(catalog.writes) == 1
    catalog.writes[0][1].resolve(None)
    assert catalog.writes[1][0] == {'{"user": "alice"}': '{"producer_byte_rate": 1, "consumer_byte_rate": 2}'}
    catalog.writes[1][1].resolve(None)
    assert answers[1].result() == {ALICE: None}
    assert answers[2].result()[ALICE] is not None
    assert len(catalog.writes) == 2


def test_what_is_stored_is_in_force_if_who_asked_is_gone(table: QuotaTable, catalog: SlowCatalog) -> None:
    alter(table, producer_byte_rate=1).abandon()
    waiting = alter(table, consumer_byte_rate=2)
    alter(table, consumer_byte_rate=3).abandon()
    last = alter(table, request_percentage=4)
    catalog.writes[0][1].resolve(None)
    assert dict(table.items()) == {ALICE: {"producer_byte_rate": 1}}
    catalog.writes[1][1].resolve(None)
    assert waiting.result() == {ALICE: None}
    catalog.writes[2][1].resolve(None)
    assert last.result() == {ALICE: None}
    assert dict(table.items()) == {
        ALICE: {"producer_byte_rate": 1, "consumer_byte_rate": 2, "request_percentage": 4}
    }


def test_what_could_not_be_stored_is_not_in_force_and_holds_nobody_up(
    table: QuotaTable, catalog: SlowCatalog
) -> None:
    failed = alter(table, producer_byte_rate=1)
    catalog.writes[0][1].fail(OSError("no room"))
    with pytest.raises(OSError, match="no room"):
        failed.result()
    alter(table, consumer_byte_rate=2)
    catalog.writes[1][1].resolve(None)
    assert dict(table.items()) == {ALICE: {"consumer_byte_rate": 2}}
