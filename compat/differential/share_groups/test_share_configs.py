"""Configs of share groups: which values are taken, how they are shown, on both brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.harness.side import Side
from compat.harness.waiting import eventually

GROUP = 32
VALUES = {
    "share.session.timeout.ms": ("999", "1000", "45000", "60000", "60001", "x"),
    "share.heartbeat.interval.ms": ("99", "100", "15000", "15001"),
    "share.record.lock.duration.ms": ("999", "14999", "15000", "60000", "60001"),
    "share.delivery.count.limit": ("1", "2", "10", "11"),
    "share.partition.max.record.locks": ("99", "100", "4000", "4001"),
    "share.assignment.interval.ms": ("-1", "0", "15000", "15001"),
    "share.auto.offset.reset": (
        "latest",
        "earliest",
        "by_duration:PT1H",
        "by_duration:-PT1H",
        "by_duration:",
        "none",
        "LATEST",
    ),
    "share.isolation.level": ("read_committed", "read_uncommitted", "READ_COMMITTED", "other"),
    "share.renew.acknowledge.enable": ("true", "FALSE", "1"),
    "share.unknown": ("1",),
}


def alter(side: Side, group: str, **configs: str | None) -> Any:
    changes = [
        {"Name": name, "ConfigOperation": 1 if value is None else 0, "Value": value}
        for name, value in configs.items()
    ]
    resource = {"ResourceType": GROUP, "ResourceName": group, "Configs": changes}
    answer = side.ask("IncrementalAlterConfigs", 1, {"Resources": [resource], "ValidateOnly": False})
    return answer["Responses"][0]["ErrorCode"]


def shown(side: Side, group: str) -> dict[str, Any]:
    resource = {"ResourceType": GROUP, "ResourceName": group, "ConfigurationKeys": None}
    asked = {"Resources": [resource], "IncludeSynonyms": True, "IncludeDocumentation": False}
    (result,) = side.ask("DescribeConfigs", 4, asked)["Results"]
    return {config.pop("Name"): config for config in result["Configs"]}


@pytest.mark.parametrize("config", VALUES)
def test_the_same_values_are_taken(pair: Pair, unique: Callable[[str], str], config: str) -> None:
    group = unique("configured")

    def scenario(side: Side) -> Any:
        codes = {value: alter(side, group, **{config: value}) for value in VALUES[config]}
        return codes, alter(side, group, **{config: None})

    pair.same(scenario)


def test_a_session_is_longer_than_the_time_between_heartbeats(
    pair: Pair, unique: Callable[[str], str]
) -> None:
    group = unique("configured")
    heartbeat, session = "share.heartbeat.interval.ms", "share.session.timeout.ms"

    def scenario(side: Side) -> Any:
        return [
            alter(side, group, **{heartbeat: "10000", session: "10000"}),
            alter(side, group, **{heartbeat: "10000", session: "10001"}),
            alter(side, group, **{heartbeat: "10001"}),
            alter(side, group, **{session: None}),
            alter(side, group, **{session: "9999"}),
        ]

    pair.same(scenario)


def test_configs_of_share_groups_are_shown_alike(pair: Pair, unique: Callable[[str], str]) -> None:
    """But for kbroker's own."""
    group = unique("shown")
    changed = {"share.auto.offset.reset": "earliest", "share.session.timeout.ms": "50000"}

    def scenario(side: Side) -> Any:
        before = shown(side, group)
        alter(side, group, **changed)
        after = eventually(
            lambda: shown(side, group),
            lambda configs: configs["share.session.timeout.ms"]["Value"] == "50000",
        )
        listed = side.ask("ListConfigResources", 1, {"ResourceTypes": [GROUP]})["ConfigResources"]
        of_shares = [
            {name: config for name, config in configs.items() if name.startswith("share.")}
            for configs in (before, after)
        ]
        return of_shares, [each for each in listed if each["ResourceName"] == group]

    pair.same(scenario)
