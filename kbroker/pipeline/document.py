"""A YAML file as plain values that know their lines.

Invariant: a `Value` holds a str, int, float, bool, None, a list of Values or a dict of Values by name;
`plain` takes the lines away again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from kbroker.pipeline.errors import Problem


@dataclass(frozen=True, slots=True)
class Value:
    data: Any
    line: int

    def plain(self) -> Any:
        if isinstance(self.data, dict):
            return {name: value.plain() for name, value in self.data.items()}
        if isinstance(self.data, list):
            return [value.plain() for value in self.data]
        return self.data


def parse(text: str, problems: list[Problem]) -> Value | None:
    """The document; None where it is no YAML (the problem says why)."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            problems.append(Problem(1, "the file is empty"))
            return None
        return _value(node, yaml.SafeLoader(""), problems)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = "; ".join(part for part in (error.context, error.problem) if part)
        problems.append(Problem(mark.line + 1 if mark else 1, f"not YAML: {said}"))
    except yaml.YAMLError as error:
        problems.append(Problem(1, f"not YAML: {error}"))
    return None


def _value(node: yaml.Node, loader: yaml.SafeLoader, problems: list[Problem]) -> Value:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return Value([_value(each, loader, problems) for each in node.value], line)
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        found: dict[str, Value] = {}
        for key, content in node.value:
            name = str(key.value)
            if name in found:
                problems.append(Problem(key.start_mark.line + 1, f"{name!r} stands here twice"))
            value = _value(content, loader, problems)
            # A block starts on the line below its name; the name is where a reader looks.
            found[name] = Value(value.data, key.start_mark.line + 1)
        return Value(found, line)
    return Value(loader.construct_object(node), line)
