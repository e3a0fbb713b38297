"""Apache Kafka's own message definitions: the JSON files inside its jars."""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from typing import Any

from compat.harness.jars import jar

NEWEST = "4.3.1"
BEFORE_4 = "3.9.2"  # the last release line with the versions that Kafka 4 dropped
JARS = {NEWEST: ("kafka-clients", "kafka-group-coordinator", "kafka-transaction-coordinator")}


@cache
def definitions(release: str) -> dict[str, dict[str, Any]]:
    """Message name -> its definition."""
    found = {}
    for artifact in JARS.get(release, ("kafka-clients",)):
        with zipfile.ZipFile(jar(artifact, release)) as archive:
            for name in archive.namelist():
                if name.startswith("common/message/") and name.endswith(".json"):
                    text = re.sub(r"(^|\s)//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    definition = json.loads(text)
                    found[definition["name"]] = definition
    return found


def version_range(text: str | None) -> range:
    """`3+`, `0-7`, `2` or `none`."""
    if text is None or text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), 32768)
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


def valid_versions(release: str, name: str) -> range:
    definition = definitions(release).get(name)
    return version_range(definition["validVersions"]) if definition else range(0)


def is_early_access(name: str) -> bool:
    """Kafka 3.9 had share groups at a version 0 that no release supports any more."""
    return name.startswith("Share")


def release_for(name: str, version: int) -> str:
    """The release that says how this version looks: the newest that knows it."""
    return NEWEST if version in valid_versions(NEWEST, name) else BEFORE_4


def nested_fields(definition: dict[str, Any], field: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The fields of a field's struct, in place or among the common structs; None for primitives."""
    if "fields" in field:
        return list(field["fields"])
    for common in definition.get("commonStructs", ()):
        if common["name"] == field["type"].removeprefix("[]"):
            return list(common["fields"])
    return None


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
