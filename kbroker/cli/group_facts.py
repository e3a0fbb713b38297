"""What commands know of groups: their kinds, members, offsets and lag."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from kbroker.cli import connection
from kbroker.cli.errors import refused
from kbroker.cli.group_members import Described, described

LAG_COLUMNS = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "committed_offset": "COMMITTED",
    "start_offset": "START",
    "log_end_offset": "END",
    "lag": "LAG",
}
NOTHING_READ = "no group has committed an offset, and none has partitions"
CLASSIC, SHARE, STREAMS = "classic", "share", "streams"
_READING = ("", "consumer", SHARE, STREAMS)
"""Protocol types of groups that read topics; others, such as Connect's, only share out work."""
_GROUP_ID_NOT_FOUND = 69

Kinds = dict[str, str]
"""Group → type."""


def lag_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Share groups have a start offset, all others commit: a column that no row has is left out."""
    types = {row["type"] for row in rows}
    left_out = "committed_offset" if types == {SHARE} else "start_offset" if SHARE not in types else ""
    return {key: name for key, name in LAG_COLUMNS.items() if key != left_out}


def group_lag(client: Any, arguments: argparse.Namespace, groups: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row for every partition that a group has committed, begun or has; without names of all."""
    listed = {str(group["group_id"]): group for group in client.list_groups()}
    names = groups or [name for name, group in listed.items() if group["protocol_type"] in _READING]
    kinds = {name: _known(listed, name) for name in names}
    with_members = {name: kind for name, kind in kinds.items() if kind != SHARE}
    return _lag(client, arguments, kinds, described(client, arguments, with_members))


def groups_with_lag(client: Any, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """State, members and lag of all groups that read topics."""
    listed = {str(group["group_id"]): group for group in client.list_groups()}
    kinds = {name: type_of(group) for name, group in listed.items() if group["protocol_type"] in _READING}
    found = described(client, arguments, kinds)
    lags: dict[str, list[dict[str, Any]]] = {name: [] for name in kinds}
    for row in _lag(client, arguments, kinds, found):
        lags[row["group"]].append(row)
    return [{"group": name, "type": kind, **found[name], "lag": lags[name]} for name, kind in kinds.items()]


def describe(client: Any, arguments: argparse.Namespace, group: str) -> dict[str, Any]:
    """State, members and lag of one group, whichever protocol it uses."""
    kinds = {group: kind_of(client, group)}
    found = described(client, arguments, kinds)
    if kinds[group] == STREAMS:
        found[group]["missing_source_topics"] = _missing_sources(client, found[group])
    return {
        "group": group,
        "type": kinds[group],
        **found[group],
        "lag": _lag(client, arguments, kinds, found),
    }


def kind_of(client: Any, group: str) -> str:
    """The type of a group; an error if there is none of this name."""
    return _known({str(each["group_id"]): each for each in client.list_groups()}, group)


def _known(listed: Mapping[str, Mapping[str, Any]], group: str) -> str:
    if group not in listed:
        raise refused(f"group {group}", _GROUP_ID_NOT_FOUND)
    return type_of(listed[group])


def type_of(listed: Mapping[str, Any]) -> str:
    """Of a group as it is listed."""
    return str(listed.get("group_type") or CLASSIC).lower()


def _missing_sources(client: Any, found: Described) -> list[str]:
    """Why a streams group is not ready, most of the time."""
    topics = {topic for each in found["subtopologies"] for topic in each["source_topics"]}
    told = client.describe_topics(sorted(topics)) if topics else []
    return sorted(str(topic["name"]) for topic in told if topic["error_code"])


def _lag(
    client: Any, arguments: argparse.Namespace, kinds: Kinds, members: Mapping[str, Described]
) -> list[dict[str, Any]]:
    others = {group: kind for group, kind in kinds.items() if kind != SHARE}
    rows = _committed_lag(client, others, members)
    shares = [group for group, kind in kinds.items() if kind == SHARE]
    if shares:
        rows += _share_lag(client, arguments, shares)
    return sorted(rows, key=lambda row: (row["group"], row["topic"], row["partition"]))


def _committed_lag(client: Any, kinds: Kinds, members: Mapping[str, Described]) -> list[dict[str, Any]]:
    """Where nothing is committed yet, every record that is there counts."""
    committed = client.list_group_offsets(list(kinds)) if kinds else {}
    positions: dict[tuple[str, Any], int | None] = {}
    for group in kinds:
        positions |= {(group, partition): None for partition in _assigned(members[group])}
        positions |= {(group, at): each.offset for at, each in committed[group].items() if each.offset >= 0}
    bounds = _bounds(client, {partition.topic for _, partition in positions})
    rows = []
    for (group, partition), offset in positions.items():
        if offset is None and partition not in bounds:
            continue  # the topic is gone, or has fewer partitions than its subtopology has tasks
        start, end = bounds.get(partition, (None, None))
        read = start if offset is None else offset
        rows.append(
            {
                "group": group,
                "type": kinds[group],
                "topic": partition.topic,
                "partition": partition.partition,
                "committed_offset": offset,
                "start_offset": None,
                "log_end_offset": end,
                "lag": None if end is None or read is None else max(0, end - read),
            }
        )
    return rows


def _share_lag(client: Any, arguments: argparse.Namespace, groups: Sequence[str]) -> list[dict[str, Any]]:
    """As the broker counts it: what is acknowledged behind the start offset is not left to do."""
    from kbroker.cli.share_offsets import share_positions

    positions = share_positions(arguments, groups)
    bounds = _bounds(client, {topic for each in positions.values() for topic, _ in each})
    return [
        {
            "group": group,
            "type": SHARE,
            "topic": topic,
            "partition": partition,
            "committed_offset": None,
            "start_offset": position.start_offset,
            "log_end_offset": bounds.get((topic, partition), (None, None))[1],
            "lag": None if position.lag is None else max(0, position.lag),
        }
        for group, partitions in positions.items()
        for (topic, partition), position in partitions.items()
    ]


def _assigned(found: Described) -> list[Any]:
    partition_type = connection.kafka().TopicPartition
    names = [name.rpartition("-") for member in found["members"] for name in member["partitions"]]
    return [partition_type(topic, int(number)) for topic, _, number in names]


def _bounds(client: Any, topics: set[str]) -> dict[tuple[str, int], tuple[int, int]]:
    """Log start and end offsets; a topic that was deleted since has none."""
    found = client.describe_topics(sorted(topics)) if topics else []
    return connection.partition_offsets(client, [topic for topic in found if not topic["error_code"]])
