"""What a PromQL query asks for: the names of its metrics, and the labels that it names beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbroker.observability.families import HISTOGRAM, Family
from kbroker.observability.table import families

# A metric as it stands in a query, with what is in braces behind it.
_METRIC = re.compile(r"\b((?:kafka|kbroker|process)_\w+|up)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED = re.compile(r"\b(?:by|on|ignoring|without) \(([^)]*)\)")
OF_PROMETHEUS = frozenset(("job", "instance", "le"))


def known() -> dict[str, Family]:
    """Names of series → their families."""
    found = {}
    for family in families():
        endings = ("_bucket", "_sum", "_count") if family.kind == HISTOGRAM else ("",)
        found |= {family.name + ending: family for ending in endings}
    return found


def metrics(query: str) -> Iterator[tuple[str, list[str]]]:
    """Names of series, and the labels that they are chosen by."""
    for name, inside in _METRIC.findall(query):
        yield name, _MATCHER.findall(inside)


def grouping(query: str) -> set[str]:
    return {label.strip() for inside in _GROUPED.findall(query) for label in inside.split(",")} - {""}


def problems(query: str) -> list[str]:
    """What the broker does not have."""
    families_by_series = known()
    found = []
    labels = set(OF_PROMETHEUS)
    names = list(metrics(query))
    if not names:
        found.append(f"no metric in {query}")
    for name, matched in names:
        if name == "up":
            continue
        family = families_by_series.get(name)
        if family is None:
            found.append(f"{name} is no metric of kbroker")
            continue
        labels |= set(family.labels)
        found += [
            f"{name} has no label {label}"
            for label in matched
            if label not in {*family.labels, *OF_PROMETHEUS}
        ]
    return found + [f"nothing in {query} has the label {label}" for label in grouping(query) - labels]
