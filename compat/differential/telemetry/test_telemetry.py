"""GetTelemetrySubscriptions and PushTelemetry: who is asked for what, and which pushes are refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.harness.side import Side
from compat.harness.waiting import eventually

CLIENT_METRICS, SET, DELETE = 16, 0, 1
ZERO, ONE = bytes(16), bytes(15) + b"\1"
SHORTEST_MS = "101"
METRICS = b"\x0a\x00"  # of one resource, which has none


@contextmanager
def subscription(side: Side, name: str, **configs: str) -> Iterator[None]:
    """In force; in the end deleted."""
    named = {config.replace("_", "."): value for config, value in configs.items()}
    alter(side, name, named)
    try:
        yield
    finally:
        alter(side, name, dict.fromkeys(named))


def alter(side: Side, name: str, configs: Mapping[str, str | None]) -> None:
    """Kafka hears of it a moment later, of what came after it later still."""
    _alter(side, name, configs)
    for value in (SHORTEST_MS, None):
        _alter(side, f"{name}-last", {"interval.ms": value})
        eventually(lambda value=value: (ask(side)["PushIntervalMs"] == int(SHORTEST_MS)) == bool(value))


def _alter(side: Side, name: str, configs: Mapping[str, str | None]) -> None:
    changes = [
        {"Name": config, "ConfigOperation": DELETE if value is None else SET, "Value": value}
        for config, value in configs.items()
    ]
    resource = {"ResourceType": CLIENT_METRICS, "ResourceName": name, "Configs": changes}
    (answer,) = side.raw("IncrementalAlterConfigs", 1, {"Resources": [resource]})["Responses"]
    assert answer["ErrorCode"] == 0, answer


def ask(side: Side, client_instance_id: bytes = ZERO) -> dict[str, Any]:
    return side.raw("GetTelemetrySubscriptions", 0, {"ClientInstanceId": client_instance_id})


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """But what is random, and what the two mean to tell differently: the temporality."""
    left_out = {"ClientInstanceId", "SubscriptionId", "ThrottleTimeMs", "DeltaTemporality"}
    kept = {name: value for name, value in answer.items() if name not in left_out}
    return {**kept, "RequestedMetrics": sorted(answer["RequestedMetrics"])}


def push(side: Side, asked: dict[str, Any], data: bytes = METRICS, **differing: Any) -> int:
    request = {
        "ClientInstanceId": asked["ClientInstanceId"],
        "SubscriptionId": asked["SubscriptionId"],
        "Terminating": False,
        "CompressionType": 0,
        "Metrics": data,
        **differing,
    }
    code: int = side.raw("PushTelemetry", 0, request)["ErrorCode"]
    return code


def test_a_client_that_nobody_subscribes_to(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        first, second = ask(side), ask(side)
        assert first["ClientInstanceId"] not in (ZERO, second["ClientInstanceId"])
        again = ask(side, first["ClientInstanceId"])
        return told(first), told(second), told(again), again["ClientInstanceId"] == ZERO

    pair.same(scenario)


def test_an_id_that_the_client_brings_is_kept(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        answers = [ask(side, client) for client in (b"k" * 16, ONE)]
        return [(told(each), each["ClientInstanceId"].hex()) for each in answers]

    pair.same(scenario)


@pytest.mark.parametrize(
    "configs",
    [
        {"metrics": "*"},
        {"metrics": "b.,a."},
        {"metrics": "a.,*"},
        {"metrics": "", "interval_ms": "500"},
        {"metrics": "a.", "interval_ms": "5000"},
        {"metrics": "a.", "interval_ms": "3600000"},
        {"metrics": "a.", "match": "client_source_address=127.*", "interval_ms": "1000"},
        {"metrics": "a.", "match": "client_source_address=127", "interval_ms": "1000"},
        {"metrics": "a.", "match": "client_source_port=\\d+", "interval_ms": "1000"},
        {"metrics": "a.", "match": "client_software_name=.*", "interval_ms": "1000"},
        {"metrics": "a.", "match": "client_software_name=unknown,client_software_version=unknown"},
        {"metrics": "a.", "match": "client_id=.*", "interval_ms": "1000"},
        {"metrics": "a.", "match": "client_id=.*,client_id=x"},
        {"metrics": "a.", "match": "client_instance_id=.*", "interval_ms": "1000"},
    ],
    ids=str,
)
def test_what_a_subscription_asks_for(
    pair: Pair, unique: Callable[[str], str], configs: dict[str, str]
) -> None:
    name = unique("subscription")

    def scenario(side: Side) -> Any:
        with subscription(side, name, **configs):
            return told(ask(side))

    pair.same(scenario)


def test_subscriptions_add_up(pair: Pair, unique: Callable[[str], str]) -> None:
    name = unique("subscription")

    def scenario(side: Side) -> Any:
        with (
            subscription(side, f"{name}-1", metrics="a.,b.", interval_ms="7000"),
            subscription(side, f"{name}-2", metrics="b.,c.", interval_ms="900"),
        ):
            both = told(ask(side))
            with subscription(side, f"{name}-3", metrics="*", interval_ms="8000"):
                return both, told(ask(side))

    pair.same(scenario)


def test_a_change_gives_a_new_subscription_id(pair: Pair, unique: Callable[[str], str]) -> None:
    name = unique("subscription")

    def scenario(side: Side) -> Any:
        asked = ask(side)
        client = asked["ClientInstanceId"]
        early = ask(side, client)["ErrorCode"]
        with subscription(side, name, metrics="a."):
            stale = push(side, asked)
            renewed = ask(side, client)
            return (
                early,
                stale,
                told(renewed),
                renewed["ClientInstanceId"] == client,
                renewed["SubscriptionId"] != asked["SubscriptionId"],
                push(side, renewed),
                push(side, renewed),
                ask(side, client)["ErrorCode"],
            )

    pair.same(scenario)


@pytest.mark.parametrize(
    ("data", "differing"),
    [
        (METRICS, {}),
        (b"", {}),
        (b"", {"Terminating": True}),
        (gzip.compress(METRICS), {"CompressionType": 1}),
        (METRICS, {"CompressionType": 1}),
        (METRICS, {"CompressionType": 3}),
        (METRICS, {"CompressionType": 4}),
        (METRICS, {"CompressionType": 5}),
        (METRICS, {"CompressionType": -1}),
        (b"garbage", {}),
        (b"\x0a", {}),
        (b"", {"CompressionType": 9}),
        (bytes(1000), {"SubscriptionId": 0}),
        (bytes(1001), {}),
        (bytes(1001), {"CompressionType": 9}),
        (METRICS, {"ClientInstanceId": ZERO}),
        (METRICS, {"ClientInstanceId": ONE}),
        (METRICS, {"ClientInstanceId": b"u" * 16}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else f"{len(value)} bytes",
)
def test_a_first_push_and_what_may_follow_it(pair: Pair, data: bytes, differing: dict[str, Any]) -> None:
    def scenario(side: Side) -> Any:
        asked = ask(side)
        codes = [push(side, asked, data, **differing)]
        codes += [push(side, asked), push(side, asked, Terminating=True), push(side, asked)]
        return codes, ask(side, asked["ClientInstanceId"])["ErrorCode"]

    pair.same(scenario)


def test_after_a_refused_push_a_client_may_ask_again(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        codes = []
        for data, differing in (
            (METRICS, {"SubscriptionId": 0}),
            (METRICS, {"CompressionType": 9}),
            (b"garbage", {}),
            (bytes(1001), {}),
        ):
            asked = ask(side)
            codes.append(
                (push(side, asked, data, **differing), ask(side, asked["ClientInstanceId"])["ErrorCode"])
            )
        return codes

    pair.same(scenario)


def test_a_connection_that_is_closed_takes_what_is_known_of_its_client_with_it(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        asked = ask(side)
        client = asked["ClientInstanceId"]
        push(side, asked)
        before = ask(side, client)["ErrorCode"]
        side.disconnect()
        eventually(lambda: ask(side, client)["ErrorCode"] == 0)
        return before

    pair.same(scenario)
