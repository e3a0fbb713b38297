"""Which quota counts for a client, who shares it, and what a request uses of it."""

from __future__ import annotations

import pytest

from kbroker.catalog.memory import MemoryCatalog
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.heartbeat import HeartbeatResponse
from kbroker.quotas import throttling as module
from kbroker.quotas.entities import entity_of
from kbroker.quotas.meters import Windows
from kbroker.quotas.table import Alteration, QuotaTable
from kbroker.quotas.throttling import PRODUCE, RequestThrottle, Throttling
from tests.support.steps import result_of

NOW = 1_700_000_000_000
WINDOWS = Windows(11, 1000)
LEVELS: tuple[dict[str, str | None], ...] = (  # by precedence
    {"user": "alice", "client-id": "a"},
    {"user": "alice", "client-id": None},
    {"user": "alice"},
    {"user": None, "client-id": "a"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "a"},
    {"client-id": None},
)
SHARED_BY = (
    ("alice", "a"),
    ("alice", "a"),
    ("alice", ""),
    ("alice", "a"),
    ("alice", "a"),
    ("alice", ""),
    ("", "a"),
    ("", "a"),
)


class Clock:
    now_ms = NOW

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def table() -> QuotaTable:
    return QuotaTable(MemoryCatalog(), ())


@pytest.fixture
def throttling(clock: Clock) -> Throttling:
    return Throttling(WINDOWS, WINDOWS, clock)


def put(throttling: Throttling, table: QuotaTable, entity: dict[str, str | None], **values: float) -> None:
    changes = list(values.items())
    result_of(table.alter([Alteration(entity_of(entity.items()), changes)], validate_only=False))
    throttling.put_in_force(table.items())


def begin(throttling: Throttling, user: str, client_id: str, size_bytes: int = 0) -> RequestThrottle:
    limits = throttling.limits_of(user, client_id)
    assert limits is not None
    return RequestThrottle(throttling, limits, size_bytes, None)


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_first_level_with_a_quota_counts(throttling: Throttling, table: QuotaTable, first: int) -> None:
    for level in range(first, len(LEVELS)):
        put(throttling, table, LEVELS[level], producer_byte_rate=100 + level)
    limits = throttling.limits_of("alice", "a")
    assert limits is not None
    assert limits.produce is not None
    assert (limits.produce.bound, limits.produce.tags) == (100 + first, SHARED_BY[first])


def test_each_kind_of_quota_is_looked_up_for_itself(throttling: Throttling, table: QuotaTable) -> None:
    put(throttling, table, {"user": "alice"}, producer_byte_rate=1)
    put(throttling, table, {"client-id": None}, consumer_byte_rate=2)
    limits = throttling.limits_of("alice", "a")
    assert limits is not None
    assert limits.produce is not None
    assert limits.fetch is not None
    assert (limits.produce.tags, limits.fetch.tags) == (("alice", ""), ("", "a"))


def test_a_client_without_an_id_has_no_quota_of_client_ids(throttling: Throttling, table: QuotaTable) -> None:
    put(throttling, table, {"client-id": None}, producer_byte_rate=1)
    put(throttling, table, {"user": "alice", "client-id": None}, producer_byte_rate=2)
    assert throttling.limits_of("alice", "") is None
    assert throttling.limits_of("bob", "") is None
    assert throttling.limits_of("bob", "a") is not None


def test_quotas_of_addresses_are_none_of_clients(throttling: Throttling, table: QuotaTable) -> None:
    put(throttling, table, {"ip": None}, connection_creation_rate=1)
    assert throttling.limits_of("alice", "a") is None


def test_the_client_ids_of_a_user_share_the_users_quota(throttling: Throttling, table: QuotaTable) -> None:
    put(throttling, table, {"user": "alice"}, producer_byte_rate=1000)
    one = begin(throttling, "alice", "a", 10_000)
    one.api_key = PRODUCE
    one.answer(None)
    assert one.throttle_ms == 0
    other = begin(throttling, "alice", "b", 1000)
    other.api_key = PRODUCE
    other.answer(None)
    assert other.throttle_ms == 1000


def test_of_a_default_everybody_has_a_share(throttling: Throttling, table: QuotaTable) -> None:
    put(throttling, table, {"user": None}, producer_byte_rate=1000)
    for user, wait_ms in (("alice", 1000), ("bob", 1000), ("alice", 12_000)):
        request = begin(throttling, user, "a", 11_000)
        request.api_key = PRODUCE
        request.answer(None)
        assert request.throttle_ms == wait_ms


def test_an_altered_quota_holds_for_what_was_used_before(throttling: Throttling, table: QuotaTable) -> None:
    put(throttling, table, {"user": "alice"}, producer_byte_rate=1000)
    for rate, wait_ms in ((1000, 0), (100, 190_000)):
        put(throttling, table, {"user": "alice"}, producer_byte_rate=rate)
        request = begin(throttling, "alice", "a", 10_000)
        request.api_key = PRODUCE
        request.unanswered()
        assert request.throttle_ms == wait_ms


def test_a_fetch_that_is_too_much_is_not_counted(throttling: Throttling, table: QuotaTable) -> None:
    put(throttling, table, {"user": "alice"}, consumer_byte_rate=1000)
    request = begin(throttling, "alice", "a")
    assert request.most_fetch_bytes == 10_000
    assert not request.fetched(11_000)
    assert request.throttle_ms == 1000
    assert begin(throttling, "alice", "a").fetched(10_000)


def test_the_time_of_requests_is_bounded_and_the_wait_is_at_most_a_window(
    throttling: Throttling, table: QuotaTable
) -> None:
    put(throttling, table, {"user": "alice"}, request_percentage=1)
    request = begin(throttling, "alice", "a")
    request.seconds = 0.1  # of the ten seconds that count: one per cent
    response = HeartbeatResponse()
    request.answer(response)
    assert (request.throttle_ms, response.throttle_time_ms) == (0, 0)
    request.encoded(0.001)
    for seconds, wait_ms in ((0.001, 200), (100.0, 1000)):
        request = begin(throttling, "alice", "a")
        request.seconds = seconds
        request.answer(response)
        assert (request.throttle_ms, response.throttle_time_ms) == (wait_ms, wait_ms)


def test_mutations_above_the_quota_are_refused_where_clients_know_it(
    throttling: Throttling, table: QuotaTable, clock: Clock
) -> None:
    put(throttling, table, {"user": "alice"}, controller_mutation_rate=1)
    request = begin(throttling, "alice", "a")
    request.strict = True
    request.mutate(21)  # eleven are there
    with pytest.raises(ApiError) as refusal:
        request.mutate(1)
    assert refusal.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    clock.now_ms += 2000  # until the answer
    request.answer(None)
    assert request.throttle_ms == 8000
    assert not begin(throttling, "alice", "a").may_mutate(1)
    clock.now_ms += 8000
    assert begin(throttling, "alice", "a").may_mutate(1)


def test_mutations_above_the_quota_are_followed_by_a_wait_where_clients_do_not_know_it(
    throttling: Throttling, table: QuotaTable
) -> None:
    put(throttling, table, {"user": "alice"}, controller_mutation_rate=1)
    request = begin(throttling, "alice", "a")
    request.mutate(21)
    request.mutate(1)
    request.answer(None)
    assert request.throttle_ms == 11_000


def test_what_is_remembered_of_clients_that_are_gone_is_forgotten(
    throttling: Throttling, table: QuotaTable, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FEWEST_METERS", 10)
    throttling._look_above = 10
    put(throttling, table, {"client-id": None}, producer_byte_rate=1000)
    for number in range(1000):
        request = begin(throttling, "alice", f"client-{number}", 1)
        request.unanswered()
        clock.now_ms += 1000
    assert len(throttling._rates) <= 30
