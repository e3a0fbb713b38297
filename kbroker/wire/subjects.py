"""What a message is about, for the line that is shown of it: topics, groups, records; the errors in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.types import INT16, RECORDS, ZERO_UUID
from kbroker.wire.batches import batches
from kbroker.wire.frames import RESPONSE, Explained
from kbroker.wire.tree import Node

_TOPIC: Final = ("topic", "topic_name")
_TOPIC_LISTS: Final = ("topic_names", "subscribed_topic_names")
_PARTITION: Final = ("partition_index", "partition", "partition_id", "index")
_PARTITION_LISTS: Final = ("partitions", "partition_indexes")
_GROUP: Final = ("group_id", "group_ids", "groups_names")
_TRANSACTION: Final = ("transactional_id", "transactional_ids")
_FIND_COORDINATOR: Final = 10
_NAMING: Final = (3, 19, 20, 75)  # APIs whose answers name topics and their ids
_KEY_TYPES: Final = {0: "groups", 1: "transactional_ids"}

TopicNames = dict[bytes, str]  # by id, as Metadata answers tell them
_ERRORS: Final = {code.value: code.name for code in ErrorCode}


class FoundError(NamedTuple):
    path: str
    code: int

    @property
    def name(self) -> str:
        return error_name(self.code)


def error_name(code: int) -> str:
    return _ERRORS.get(code, f"error {code}")


@dataclass(slots=True)
class Subjects:
    topics: dict[str, list[int]] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    transactional_ids: list[str] = field(default_factory=list)
    errors: list[FoundError] = field(default_factory=list)
    records: int | None = None
    wrong_batches: int = 0


def subjects(explained: Explained, names: TopicNames) -> Subjects:
    found = Subjects()
    if explained.body is None:
        return found
    for path, node in explained.body.walk_paths():
        if node.is_struct or node.field is None:
            _note_topic(node, names, found)
        elif node.children:
            _note_list(node, found)
        elif node.type is RECORDS:
            _note_records(explained, node, found)
        elif isinstance(node.value, str):
            if node.name in _GROUP:
                _add(found.groups, node.value)
            elif node.name in _TRANSACTION:
                _add(found.transactional_ids, node.value)
        elif _is_error(node) and explained.kind == RESPONSE and node.value:
            found.errors.append(FoundError(path, node.value))
    if explained.api_key == _FIND_COORDINATOR:
        _note_coordinator_keys(explained.body, found)
    return found


def learn_topic_names(explained: Explained, names: TopicNames) -> None:
    """Keep the ids of topics that an answer names: others tell them by id only."""
    if explained.body is None or explained.kind != RESPONSE or explained.api_key not in _NAMING:
        return
    for node in explained.body.walk():
        topic_id = node.get("topic_id")
        name = next((node.get(each) for each in ("name", *_TOPIC) if node.get(each)), None)
        if isinstance(topic_id, bytes) and topic_id != ZERO_UUID and isinstance(name, str):
            names[topic_id] = name


def topic_id_text(topic_id: bytes) -> str:
    """As Kafka's tools print it."""
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def records_of(explained: Explained, node: Node) -> tuple[bytes, bool]:
    """What is here of a RECORDS field, and whether that is all of it."""
    if node.end is not None:
        return node.value or b"", not explained.is_shortened
    return (b"" if node.content is None else explained.frame[node.content :]), not explained.is_cut


def _is_error(node: Node) -> bool:
    return node.type is INT16 and str(node.name).endswith("error_code")


def _add(to: list[str], value: str) -> None:
    if value and value not in to:
        to.append(value)


def _note_topic(node: Node, names: TopicNames, found: Subjects) -> None:
    values = {child.name: child.value for child in node.children if not child.children}
    name = values.get("topic") or values.get("topic_name")
    if not name and "name" in values and node.is_struct and _is_topic(node.type.__name__):
        name = values["name"]
    topic_id = values.get("topic_id")
    if not name and isinstance(topic_id, bytes) and topic_id != ZERO_UUID:
        name = names.get(topic_id) or topic_id_text(topic_id)
    if isinstance(name, str) and name:
        partitions = found.topics.setdefault(name, [])
        known = set(partitions)
        partitions += dict.fromkeys(each for each in _partitions(node, values) if each not in known)


def _is_topic(struct: str) -> bool:
    return "Topic" in struct and "Config" not in struct


def _partitions(topic: Node, values: dict[str | int, Any]) -> Iterator[int]:
    own = _number(values)
    if own is not None:
        yield own
    for of in topic.children:
        for element in of.children:
            if isinstance(element.value, int):
                if of.name in _PARTITION_LISTS:
                    yield element.value
                continue
            number = _number({child.name: child.value for child in element.children})
            if number is not None:
                yield number


def _number(values: dict[str | int, Any]) -> int | None:
    """Of a partition."""
    for name in _PARTITION:
        found = values.get(name)
        if isinstance(found, int):
            return found
    return None


def _note_list(node: Node, found: Subjects) -> None:
    for element in node.children:
        if not isinstance(element.value, str):
            continue
        if node.name in _TOPIC_LISTS:
            found.topics.setdefault(element.value, [])
        elif node.name in _GROUP:
            _add(found.groups, element.value)
        elif node.name in _TRANSACTION:
            _add(found.transactional_ids, element.value)


def _note_records(explained: Explained, node: Node, found: Subjects) -> None:
    data, whole = records_of(explained, node)
    found.records = found.records or 0
    for facts, _ in batches(data, whole):
        found.records += max(facts.get("records", 1 if "magic" in facts else 0), 0)
        found.wrong_batches += facts.get("crc") == "wrong"


def _note_coordinator_keys(body: Node, found: Subjects) -> None:
    """Of a request the type is in it; an answer does not tell."""
    kind = body.get("key_type", 0)
    if body.child("key") is not None or body.child("coordinator_keys") is not None:
        to = getattr(found, _KEY_TYPES.get(kind, "groups"))
        if body.get("key"):
            _add(to, body.get("key"))
        keys = body.child("coordinator_keys")
        for each in keys.children if keys is not None else ():
            if isinstance(each.value, str):
                _add(to, each.value)
