from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)

from .conftest import Cluster
from .quota_requests import alter, described, remove


def test_a_quota_is_set_altered_and_removed(cluster: Cluster) -> None:
    alice = {"user": "alice"}
    assert alter(cluster, alice, producer_byte_rate=1000, request_percentage=12.5) == ErrorCode.NONE
    assert described(cluster, user="alice") == [
        (alice, {"producer_byte_rate": 1000, "request_percentage": 12.5})
    ]
    assert alter(cluster, alice, producer_byte_rate=2000) == ErrorCode.NONE
    assert remove(cluster, alice, "request_percentage", "consumer_byte_rate") == ErrorCode.NONE
    assert described(cluster, user="alice") == [(alice, {"producer_byte_rate": 2000})]
    assert remove(cluster, alice, "producer_byte_rate") == ErrorCode.NONE
    assert described(cluster) == []


def test_quotas_outlive_a_restart(cluster: Cluster) -> None:
    alter(cluster, {"user": None, "client-id": "batch"}, consumer_byte_rate=5)
    alter(cluster, {"ip": "10.0.0.1"}, connection_creation_rate=7)
    cluster.broker = cluster.start({"node.id": "1"})
    assert sorted(described(cluster), key=str) == [
        ({"client-id": "batch", "user": None}, {"consumer_byte_rate": 5}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 7}),
    ]
    assert cluster.broker.throttling is not None
    assert cluster.broker.connection_rates is not None


def test_a_broker_without_quotas_has_nothing_that_enforces_them(cluster: Cluster) -> None:
    assert "quotas" not in cluster.broker.__dict__
    alter(cluster, {"user": "alice"}, producer_byte_rate=1000)
    assert cluster.broker.throttling is not None
    remove(cluster, {"user": "alice"}, "producer_byte_rate")
    assert cluster.broker.throttling is None


REFUSED = {
    "no entity": ({}, {"producer_byte_rate": 1}),
    "a type that there is not": ({"group": "g"}, {"producer_byte_rate": 1}),
    "an empty name": ({"user": ""}, {"producer_byte_rate": 1}),
    "an address and a user": ({"ip": "10.0.0.1", "user": "alice"}, {"connection_creation_rate": 1}),
    "an address that is none": ({"ip": "300.1.1.1"}, {"connection_creation_rate": 1}),
    "a quota that there is not": ({"user": "alice"}, {"bytes": 1}),
    "a client's quota of an address": ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1}),
    "an address's quota of a client": ({"user": "alice"}, {"connection_creation_rate": 1}),
    "nothing": ({"user": "alice"}, {"producer_byte_rate": 0}),
    "less than nothing": ({"user": "alice"}, {"request_percentage": -1}),
    "no number": ({"user": "alice"}, {"request_percentage": float("nan")}),
    "a part of a byte": ({"user": "alice"}, {"producer_byte_rate": 1.5}),
    "too much": ({"ip": None}, {"connection_creation_rate": 2.0**31}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_quota_is_refused_for(cluster: Cluster, case: str) -> None:
    entity, values = REFUSED[case]
    assert alter(cluster, entity, **values) == ErrorCode.INVALID_REQUEST
    assert described(cluster) == []


def test_one_refused_quota_refuses_those_beside_it_but_no_other_entity(cluster: Cluster) -> None:
    entries = [
        RequestEntryData([EntityData("user", "alice")], [OpData("producer_byte_rate", 5), OpData("x", 5)]),
        RequestEntryData([EntityData("user", "bob")], [OpData("producer_byte_rate", 5)]),
    ]
    answer: AlterClientQuotasResponse = cluster.send(AlterClientQuotasRequest(entries), 1)
    assert [entry.error_code for entry in answer.entries] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert described(cluster) == [({"user": "bob"}, {"producer_byte_rate": 5})]


def test_of_an_entity_that_comes_twice_the_first_holds_and_the_second_is_refused(cluster: Cluster) -> None:
    entries = [
        RequestEntryData([EntityData("user", "alice")], [OpData("producer_byte_rate", rate)])
        for rate in (5.0, 6.0)
    ]
    answer: AlterClientQuotasResponse = cluster.send(AlterClientQuotasRequest(entries), 1)
    assert [entry.error_code for entry in answer.entries] == [ErrorCode.INVALID_REQUEST]
    assert described(cluster) == [({"user": "alice"}, {"producer_byte_rate": 5})]


def test_what_is_only_validated_changes_nothing(cluster: Cluster) -> None:
    entry = RequestEntryData([EntityData("user", "alice")], [OpData("producer_byte_rate", 5)])
    answer: AlterClientQuotasResponse = cluster.send(AlterClientQuotasRequest([entry], validate_only=True), 1)
    assert answer.entries[0].error_code == ErrorCode.NONE
    assert described(cluster) == []


def test_too_many_changes_at_once_are_refused(cluster: Cluster) -> None:
    ops = [OpData("producer_byte_rate", 5)] * 10_001
    answer: AlterClientQuotasResponse = cluster.send(
        AlterClientQuotasRequest([RequestEntryData([EntityData("user", "alice")], ops)]), 1
    )
    assert answer.entries[0].error_code == ErrorCode.POLICY_VIOLATION
