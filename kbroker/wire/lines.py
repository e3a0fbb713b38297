"""Events as they are printed: a line each, or a JSON object each; with all fields on request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from kbroker.wire.connection import Event
from kbroker.wire.fields import Shown, as_json, as_lines
from kbroker.wire.frames import REQUEST, Explained
from kbroker.wire.subjects import Subjects, TopicNames, learn_topic_names, subjects

_MOST_NAMES = 4


class Wanted(NamedTuple):
    """Which events are printed, and how."""

    json: bool = False
    verbose: bool = False
    shown: Shown = Shown()
    apis: frozenset[str] | None = None  # in lower case
    client_id: str | None = None
    errors_only: bool = False
    positions: bool = False  # of fields


class Told(NamedTuple):
    """An event with what its message is about."""

    event: Event
    subjects: Subjects


class Teller:
    """Makes lines of events; learns the names of topics from the answers that tell them."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.names: TopicNames = {}

    def told(self, event: Event) -> Told:
        if event.explained is None:
            return Told(event, Subjects())
        learn_topic_names(event.explained, self.names)
        return Told(event, subjects(event.explained, self.names))

    def lines(self, told: Told) -> Iterator[str]:
        if not self._wants(told):
            return
        if self.wanted.json:
            yield json.dumps(self.as_object(told), ensure_ascii=False)
            return
        yield line(told)
        explained = told.event.explained
        if explained is not None and self.wanted.verbose:
            yield from as_lines(explained, self.wanted.shown, "    ", positions=self.wanted.positions)

    def _wants(self, told: Told) -> bool:
        wanted, explained = self.wanted, told.event.explained
        if explained is None:
            selected = wanted.apis is not None or wanted.client_id is not None or wanted.errors_only
            return not (told.event.routine and selected)
        if wanted.apis is not None and explained.api.lower() not in wanted.apis:
            return False
        if wanted.client_id is not None and explained.client_id != wanted.client_id:
            return False
        return not wanted.errors_only or is_error(told)

    def as_object(self, told: Told) -> dict[str, Any]:
        event, found = told
        time = datetime.fromtimestamp(event.time).astimezone().isoformat(timespec="microseconds")
        known: dict[str, Any] = {"time": time, "connection": event.connection}
        explained = event.explained
        if explained is None:
            return {**known, "remark": event.remark}
        known |= {
            "direction": explained.kind,
            "api": "SaslToken" if explained.api_key is None and explained.note else explained.api,
            "api_key": explained.api_key,
            "version": explained.version,
            "correlation_id": explained.correlation_id,
            "client_id": explained.client_id,
            "size": explained.size,
        }
        if event.latency_ms is not None:
            known["latency_ms"] = round(event.latency_ms, 3)
        if found.topics:
            known["topics"] = found.topics
        if found.groups:
            known["groups"] = found.groups
        if found.transactional_ids:
            known["transactional_ids"] = found.transactional_ids
        if found.records is not None:
            known["records"] = found.records
        if found.wrong_batches:
            known["batches_with_wrong_crc"] = found.wrong_batches
        if found.errors:
            known["errors"] = [{**each._asdict(), "name": each.name} for each in found.errors]
        if explained.problem is not None:
            known["problem"] = explained.problem._asdict()
        if explained.is_shortened:
            known["records_shortened"] = True
        elif explained.is_cut and explained.frame:
            known["explained_bytes"] = len(explained.frame)
        if explained.note:
            known["note"] = explained.note
        if self.wanted.verbose:
            known["fields"] = as_json(explained, self.wanted.shown)
        return known


def is_error(told: Told) -> bool:
    explained = told.event.explained
    return bool(told.subjects.errors or told.subjects.wrong_batches) or (
        explained is not None and explained.problem is not None
    )


def line(told: Told) -> str:
    event, found = told
    moment = datetime.fromtimestamp(event.time)
    time = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}"
    start = f"{time} #{event.connection}"
    explained = event.explained
    if explained is None:
        return f"{start} -- {event.remark}"
    return f"{start} {frame_text(explained, found, event.latency_ms)}"


def frame_text(explained: Explained, found: Subjects, latency_ms: float | None = None) -> str:
    parts = ["→" if explained.kind == REQUEST else "←"]
    if explained.api_key is None:
        parts.append(explained.note or explained.kind)
    else:
        parts += [explained.api, f"v{explained.version}"]
    if explained.correlation_id is not None:
        parts.append(f"id={explained.correlation_id}")
    if explained.client_id is not None:
        parts.append(f"client={explained.client_id}")
    parts.append(f"{explained.size} B")
    if latency_ms is not None:
        parts.append(f"{latency_ms:.1f} ms")
    parts += _about(explained, found)
    return " ".join(parts)


def _about(explained: Explained, found: Subjects) -> Iterator[str]:
    names = [
        f"{topic}[{_numbers(partitions)}]" if partitions else topic
        for topic, partitions in found.topics.items()
    ]
    if names:
        yield _few(names)
    if found.groups:
        yield f"group={_few(found.groups)}"
    if found.transactional_ids:
        yield f"transactional_id={_few(found.transactional_ids)}"
    if found.records is not None:
        yield f"records={found.records}" + ("+" if explained.is_cut else "")
    if found.wrong_batches:
        yield f"WRONG_CRC×{found.wrong_batches}"
    yield from _errors(found)
    if explained.is_cut and explained.frame and not explained.is_shortened:
        yield f"(first {len(explained.frame)} bytes explained)"
    if explained.note and explained.api_key is not None:
        yield f"({explained.note})"
    if explained.problem is not None:
        yield f"UNREADABLE at {explained.problem}"


def _errors(found: Subjects) -> Iterator[str]:
    counts: dict[str, int] = {}
    for each in found.errors:
        counts[each.name] = counts.get(each.name, 0) + 1
    for name, count in counts.items():
        yield name if count == 1 else f"{name}×{count}"


def _few(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ",".join(names[:_MOST_NAMES]) + (f",…+{more}" if more > 0 else "")


def _numbers(numbers: list[int]) -> str:
    """0-3,7"""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
