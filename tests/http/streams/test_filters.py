"""Filters of streams: what comes, what does not, and that what does not come is not read again."""

from __future__ import annotations

from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from kbroker.http.streams.filters import LONGEST_VALUE
from tests.http.streams.conftest import publish, values
from tests.http.streams.test_events import followed
from tests.http.streams.test_sockets import opened, received
from tests.support.event_stream import EventStream
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually

_numbers = count()
RECORDS: list[dict[str, Any]] = [
    {"key": "ada", "value": {"amount": 12, "items": ["a"]}, "headers": {"trace": "1"}},
    {"key": "bob", "value": {"amount": 7}, "headers": {"trace": "2", "shop": "x"}},
    {"value": {"amount": "12"}},
    {"key": "ada", "valueText": "no JSON"},
    {"key": "", "value": None},
    {"keyBase64": "/w==", "valueBase64": "/w=="},
    {"key": "ada", "value": [1], "headers": [{"key": "trace", "value": None}]},
    {"value": 12},
    {"valueText": '{"amount": NaN}'},
]


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        ("whereKey=ada", [0, 3, 6]),
        ("whereKey=ada&whereKey=bob", [0, 1, 3, 6]),
        ("whereKey=", [4]),
        ("whereHeader=trace", [0, 1, 6]),
        ("whereHeader=trace=2", [1]),
        ("whereHeader=trace=", []),
        ("whereHeader=trace&whereHeader=shop=x", [1]),
        ("where=" + quote("$.amount"), [0, 1, 2]),
        ("where=" + quote("$.amount == 12"), [0]),
        ("where=" + quote("$.amount < 10"), [1]),
        ("where=" + quote("$.items[0]"), [0]),
        ("where=" + quote("$[0]"), [6]),
        ("where=" + quote("$ == 12"), [7]),
        ("where=" + quote("$.amount != 12"), [1, 2, 6, 7]),
        ("where=" + quote("$.amount > 5") + "&where=" + quote("$.items"), [0]),
        ("whereKey=ada&where=" + quote("$.amount"), [0]),
    ],
)
def test_only_what_is_wanted_comes(
    quick: ServerProcess, quick_http: HttpClient, query: str, offsets: list[int]
) -> None:
    topic = f"filters-{next(_numbers)}"
    assert quick_http.post("/topics", {"name": topic}).status == 201
    assert quick_http.post(f"/topics/{topic}/messages", RECORDS).status == 200
    with followed(quick, topic, f"offset=earliest&{query}") as stream:
        blocks = stream.blocks()
        found = []
        while not stream.last_id.startswith(f"{len(RECORDS)}~"):
            event = next(blocks)
            if event is not None:
                found.append(event.json["offset"])
    assert found == offsets


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("where=amount", "begins with $"),
        ("where=" + quote("$.a == [1]"), "a literal is a number"),
        ("where=" + "$" + ".a" * 1000, "1000 characters"),
        ("whereHeader=", "name=value"),
        ("whereHeader==x", "name=value"),
        ("&".join(["whereKey=a"] * 17), "16 times at most"),
        ("&".join(["where=$"] * 17), "16 times at most"),
    ],
)
def test_what_is_no_filter_is_refused(server: ServerProcess, topic: str, query: str, detail: str) -> None:
    with EventStream(server.url, f"/topics/{topic}/stream?{query}") as stream:
        assert stream.status == 400
        assert detail in stream.problem()["detail"]


def test_a_very_long_value_fulfils_no_condition(server: ServerProcess, http: HttpClient, topic: str) -> None:
    for size in (LONGEST_VALUE // 2, LONGEST_VALUE + 1, 1):
        publish(http, topic, {"n": size, "long": "x" * size})
    with followed(server, topic, "offset=earliest&where=" + quote("$.n > 0")) as stream:
        assert [value["n"] for value in values(stream.records(2))] == [LONGEST_VALUE // 2, 1]


def test_who_sees_nothing_learns_how_far_the_stream_is(quick: ServerProcess, quick_http: HttpClient) -> None:
    quick_http.post("/topics", {"name": "filtered"})
    with followed(quick, "filtered", "whereKey=nobody") as stream:
        publish(quick_http, "filtered", *range(100), key="ada")
        blocks = stream.blocks()
        while not stream.last_id.startswith("100~"):
            assert next(blocks) is None
    with opened(quick, "/topics/filtered/stream?whereKey=nobody") as socket:
        assert received(socket)["position"].startswith("100~")
        publish(quick_http, "filtered", *range(100), key="ada")
        while not received(socket)["position"].startswith("200~"):
            pass


def test_a_group_is_told_that_what_does_not_come_is_done(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, *range(10), key="ada")
    group = f"g-{topic}"
    with EventStream(
        server.url, f"/topics/{topic}/stream?group={group}&offset=earliest&whereKey=x"
    ) as stream:
        assert stream.status == 200

        def committed() -> dict[int, int]:
            found = http.get(f"/groups/{group}/offsets").json["offsets"]
            return {each["partition"]: each["offset"] for each in found}

        eventually(lambda: committed().get(0) == 10)
