"""Every declared message is what Apache Kafka's own definitions say, field by field, version by version."""

from __future__ import annotations

from typing import Any

import pytest
from declared_messages import (
    COORDINATOR_RECORDS,
    MESSAGES,
    each_message,
    each_message_and_version,
    versions_of,
)
from kafka_definitions import (
    BEFORE_4,
    NEWEST,
    definitions,
    is_early_access,
    nested_fields,
    release_for,
    snake_case,
    valid_versions,
    version_range,
)

from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.messages import API_NAMES
from kbroker.protocol.types import ZERO_UUID, Array, FixedType

NUMBERS = {"int8", "int16", "int32", "int64", "uint16", "uint32"}


def test_every_api_of_the_broker_listener_is_declared():
    apis = {
        definition["apiKey"]: definition["name"].removesuffix("Request")
        for definition in definitions(NEWEST).values()
        if definition["type"] == "request"
        and "broker" in definition.get("listeners", ())
        and definition["validVersions"] != "none"
    }
    assert apis == API_NAMES


@each_message
def test_the_versions_are_those_of_kafka_4_and_those_it_dropped(cls):
    name = cls.__name__
    expected = set(valid_versions(NEWEST, name))
    if not is_early_access(name):
        expected |= set(valid_versions(BEFORE_4, name))
    assert set(versions_of(cls)) == expected


@each_message
def test_the_head_of_the_declaration_is_kafkas(cls):
    definition, schema = definitions(NEWEST)[cls.__name__], schema_of(cls)
    assert (schema.name, schema.kind) == (definition["name"], definition["type"])
    assert schema.api_key == definition.get("apiKey")
    flexible = version_range(definition["flexibleVersions"])
    assert [schema.is_flexible(v) for v in versions_of(cls)] == [v in flexible for v in versions_of(cls)]


@each_message_and_version
def test_the_fields_are_kafkas(cls, version):
    definition = definitions(release_for(cls.__name__, version))[cls.__name__]
    assert ours(cls, version) == kafkas(definition, definition["fields"], version)


def ours(cls: type[Any], version: int) -> list[dict[str, Any]]:
    return [described(f, version) for f in schema_of(cls) if f.present(version)]


def described(f: Field, version: int) -> dict[str, Any]:
    of = f.type.of if isinstance(f.type, Array) else f.type
    default = f.default_value()
    return {
        "name": f.name,
        "array": isinstance(f.type, Array),
        "type": ours(of, version) if isinstance(of, type) else of.name,
        "nullable": f.nullable(version),
        "tag": f.tag,
        "default": "struct" if isinstance(f.type, type) and default is not None else default,
        "flexible": f.flexible,
    }


def kafkas(definition: dict[str, Any], fields: list[dict[str, Any]], version: int) -> list[dict[str, Any]]:
    found = []
    for field in fields:
        if version not in version_range(field.get("versions", field.get("taggedVersions"))):
            continue
        nested = nested_fields(definition, field)
        tagged = version in version_range(field.get("taggedVersions"))
        found.append(
            {
                "name": snake_case(field["name"]),
                "array": field["type"].startswith("[]"),
                "type": field["type"].removeprefix("[]")
                if nested is None
                else kafkas(definition, nested, version),
                "nullable": version in version_range(field.get("nullableVersions")),
                "tag": int(field["tag"]) if tagged else None,
                "default": default_of(definition, field),
                "flexible": field.get("flexibleVersions") != "none",
            }
        )
    return found


def default_of(definition: dict[str, Any], field: dict[str, Any]) -> Any:
    kind, default = field["type"], field.get("default")
    if default == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind == "records":
        # Kafka leaves unset records null even where null cannot be sent; ours are then empty.
        valid = version_range(definition["validVersions"])
        nullable = version_range(field.get("nullableVersions"))
        return None if any(v in nullable for v in valid) else b""
    if kind == "bool":
        return str(default).lower() == "true"
    if kind in NUMBERS:
        return int(str(default or 0), 0)
    return {"string": default or "", "bytes": b"", "uuid": ZERO_UUID, "float64": 0.0}.get(kind, "struct")


@each_message
def test_a_field_is_ignorable_where_kafka_lets_it_be_dropped(cls):
    compare_ignorable(cls, definitions(NEWEST)[cls.__name__], None, versions_of(cls))


def compare_ignorable(
    cls: type[Any], definition: dict[str, Any], fields: list[dict[str, Any]] | None, versions: range
) -> None:
    theirs = {snake_case(field["name"]): field for field in fields or definition["fields"]}
    for f in schema_of(cls):
        field = theirs.get(f.name)
        if field is None:  # a field of dropped versions only, which Kafka 4 knows no more
            continue
        present = [v for v in versions if f.present(v)]
        if present != list(versions):
            assert f.ignorable == (field.get("ignorable") in (True, "true")), f.name
        of = f.type.of if isinstance(f.type, Array) else f.type
        if isinstance(of, type):
            nested = nested_fields(definition, field)
            assert nested is not None
            compare_ignorable(of, definition, nested, range(present[0], present[-1] + 1))


@pytest.mark.parametrize("kind", ["fixed", "tagged struct"])
def test_what_the_codecs_rely_on_holds_for_every_field(kind):
    for cls in MESSAGES:
        for f in all_fields(cls):
            if kind == "tagged struct" and cls in COORDINATOR_RECORDS:
                continue  # only ever made whole
            if kind == "fixed" and isinstance(f.type, FixedType):
                assert f.nullable_since is None, f.name
            if kind == "tagged struct" and f.tag is not None and isinstance(f.type, type):
                # A shared default must have nothing that could be changed behind its back.
                assert all(isinstance(inner.type, FixedType) for inner in schema_of(f.type)), f.name


def all_fields(cls: type[Any]) -> list[Field]:
    found = list(schema_of(cls))
    for f in schema_of(cls):
        of = f.type.of if isinstance(f.type, Array) else f.type
        if isinstance(of, type):
            found += all_fields(of)
    return found
