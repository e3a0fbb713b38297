"""The fields of a message for people and for programs: all but payloads and secrets.

`Shown` says what is wanted: payloads are the keys, values and headers of records, and bytes that only the
application understands.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import construct

from kbroker.protocol import reference
from kbroker.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kbroker.protocol.message import schema_of
from kbroker.protocol.types import RECORDS, UUID
from kbroker.wire.batches import Facts, batches, records, text
from kbroker.wire.frames import Explained
from kbroker.wire.secrets import HIDDEN, hides
from kbroker.wire.subjects import error_name, records_of, topic_id_text
from kbroker.wire.tree import Node

# Bytes of the embedded consumer protocol, by API and field.
_EMBEDDED: Final = {
    (11, "metadata"): ConsumerProtocolSubscription,
    (14, "assignment"): ConsumerProtocolAssignment,
    (15, "member_metadata"): ConsumerProtocolSubscription,
    (15, "member_assignment"): ConsumerProtocolAssignment,
}


class Shown(NamedTuple):
    payloads: bool = False
    full: bool = False  # payloads unshortened


def as_json(explained: Explained, shown: Shown) -> dict[str, Any]:
    """The fields by name; a field that could not be read to its end holds what was read of it."""
    return {} if explained.body is None else _struct(explained, explained.body, shown)


def _struct(explained: Explained, node: Node, shown: Shown) -> dict[str, Any]:
    return {str(child.name): _value(explained, child, node, shown) for child in node.children}


def _value(explained: Explained, node: Node, parent: Node, shown: Shown) -> Any:
    if hides(node, parent) and node.value is not None:
        return HIDDEN
    if node.is_list:
        if node.is_null and node.value is None:
            return None
        return [_value(explained, element, node, shown) for element in node.children]
    if node.is_struct:
        return None if node.is_null and not node.children else _struct(explained, node, shown)
    if node.type is RECORDS:
        return None if node.is_null else _records(explained, node, shown)
    if node.end is None:
        return None
    if node.type is UUID:
        return topic_id_text(node.value)
    if isinstance(node.value, bytes | bytearray | memoryview):
        return _bytes(explained, node, shown)
    return node.value


def _records(explained: Explained, node: Node, shown: Shown) -> dict[str, Any]:
    data, whole = records_of(explained, node)
    found = []
    for facts, batch in batches(data, whole):
        if shown.payloads and "problem" not in facts:
            facts["payloads"] = list(records(batch, full=shown.full))
        found.append(facts)
    return {"size": len(data) if node.length is None else node.length, "batches": found}


def _bytes(explained: Explained, node: Node, shown: Shown) -> Any:
    embedded = _EMBEDDED.get((explained.api_key or 0, str(node.name)))
    if (
        embedded is not None
        and len(node.value) > 2
        and (read := _consumer_protocol(embedded, node.value, shown))
    ):
        return read
    return text(node.value, full=shown.full) if shown.payloads else {"size": len(node.value)}


def _consumer_protocol(cls: type[Any], data: bytes, shown: Shown) -> dict[str, Any] | None:
    """What a consumer wrote for the others of its group; None, if another protocol did."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        return None
    stream = io.BytesIO(data)
    stream.seek(2)
    try:
        value = reference.struct_for(cls, min(version, schema_of(cls).versions[1])).parse_stream(stream)
    except construct.ConstructError:
        return None
    user_data = value.get("user_data")
    if user_data is not None:
        value["user_data"] = text(user_data, full=shown.full) if shown.payloads else {"size": len(user_data)}
    return {"version": version, **_plain(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if not name.startswith("_")}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def as_lines(
    explained: Explained, shown: Shown, indent: str = "  ", *, positions: bool = False
) -> Iterator[str]:
    """A line for each field, in the order of the frame; with `positions`, of where it begins."""
    if explained.body is not None:
        for line, position in _lines(explained, explained.body, shown, ""):
            at = "" if not positions else " " * 6 if position is None else f"{position:6}"
            yield f"{at}{indent}{line}"


def _lines(explained: Explained, node: Node, shown: Shown, indent: str) -> Iterator[tuple[str, int | None]]:
    for child in node.children:
        name = "-" if isinstance(child.name, int) else f"{child.name}:"
        if hides(child, node):
            yield f"{indent}{name} {HIDDEN}", child.start
        elif child.children:
            inner = indent + "  "
            if child.is_list:
                yield f"{indent}{name} {len(child.children)}", child.start
                yield from _lines(explained, child, shown, inner)
            else:
                yield f"{indent}{name}", child.start
                yield from _lines(explained, child, shown, inner)
        elif child.type is RECORDS and not child.is_null:
            yield from _record_lines(explained, child, shown, indent, name)
        else:
            yield f"{indent}{name} {_leaf(explained, child, node, shown)}", child.start


def _leaf(explained: Explained, node: Node, parent: Node, shown: Shown) -> str:
    if node.end is None:
        return "?"
    if node.is_list:
        return "null" if node.value is None else "0"
    value = _value(explained, node, parent, shown)
    if isinstance(value, dict):
        return _dict_text(value) if list(value) != ["size"] else f"{value['size']} bytes"
    if str(node.name).endswith("error_code"):
        return f"{value} {error_name(value)}"
    if isinstance(value, str):
        return value if node.type is UUID else _quoted(value)
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _dict_text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_dict_text(each)}" for name, each in value.items())
    return f"[{', '.join(map(_dict_text, value))}]" if isinstance(value, list) else str(value)


def _record_lines(
    explained: Explained, node: Node, shown: Shown, indent: str, name: str
) -> Iterator[tuple[str, int | None]]:
    data, whole = records_of(explained, node)
    yield f"{indent}{name} {len(data) if node.length is None else node.length} bytes", node.start
    position = node.content
    for facts, batch in batches(data, whole):
        yield f"{indent}  - {batch_text(facts)}", position
        position = None if position is None else position + len(batch)
        if shown.payloads and "problem" not in facts:
            for record in records(batch, full=shown.full):
                yield f"{indent}      {_record_text(record)}", None


def batch_text(facts: Facts) -> str:
    if "records" not in facts:
        return " ".join(f"{name}={value}" for name, value in facts.items())
    parts = [
        f"offset={facts['base_offset']}..{facts['last_offset']}",
        f"records={facts['records']}",
        f"size={facts['size']}",
        f"codec={facts['codec']}",
        f"timestamp={facts['base_timestamp']}..{facts['max_timestamp']} ({facts['timestamp_type']})",
    ]
    if "producer_id" in facts:
        numbers = f"{facts['producer_id']}/{facts['producer_epoch']}/{facts['base_sequence']}"
        parts.append(f"producer id/epoch/sequence={numbers}")
    parts += [flag for flag in ("transactional", "control") if facts.get(flag)]
    parts.append(f"leader_epoch={facts['leader_epoch']}")
    parts.append(f"crc {facts['crc']}")
    if "problem" in facts:
        parts.append(f"({facts['problem']})")
    return " ".join(parts)


def _record_text(record: Facts) -> str:
    if "problem" in record:
        return f"unreadable: {record['problem']}"
    if "marker" in record:
        return f"@{record['offset']} {record['marker']}"
    key, value = (("null" if each is None else _quoted(each)) for each in (record["key"], record["value"]))
    headers = "".join(f" {name}={value}" for name, value in record.get("headers", ()))
    return f"@{record['offset']} {key} = {value}{headers}"
