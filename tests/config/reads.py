"""Which configs the code reads: by name from settings, or as a field of a dataclass that holds them.

The forms are few on purpose, and a reader in another form fails the test of its config: ``settings["name"]``,
``settings.text("name")``, ``settings.of_listener(listener, "name")`` or ``values["name"]``; and
``config.field`` or ``settings.field``. The object is a variable or an attribute of that name, with or without
an underscore before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

HOLDERS = {"config", "settings", "values"}


@dataclass
class Reads:
    names: set[str] = field(default_factory=set)
    """Configs that are read by their names."""
    fields: set[str] = field(default_factory=set)
    """Attributes that are read of a config or of settings."""

    def add(self, source: str) -> None:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Subscript) and _is_read(node) and _holder(node.value):
                self.names.update(_text(node.slice))
            elif isinstance(node, ast.Attribute) and _is_read(node) and _holder(node.value):
                self.fields.add(node.attr)
            elif _is_call_of(node, "text") and _holder(node.func.value):
                self.names.update(_text(node.args[0]))
            elif _is_call_of(node, "of_listener") and _holder(node.func.value):
                self.names.update(_text(node.args[1]))


def filled_in(source: str) -> set[str]:
    """The dataclasses that ``settings.typed`` is asked for."""
    return {
        argument.id
        for node in ast.walk(ast.parse(source))
        if _is_call_of(node, "typed")
        for argument in node.args[:1]
        if isinstance(argument, ast.Name)
    }


def methods_of(source: str, class_name: str) -> dict[str, set[str]]:
    """What each method of a class reads of its own object: attributes, and texts in brackets or calls."""
    (declared,) = (
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == class_name
    )
    return {
        method.name: set(_read_in(method)) for method in declared.body if isinstance(method, ast.FunctionDef)
    }


def _read_in(method: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            yield node.attr
        elif isinstance(node, ast.Subscript):
            yield from _text(node.slice)
        elif isinstance(node, ast.Call):
            for argument in node.args:
                yield from _text(argument)


def _is_call_of(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def _is_read(node: ast.Subscript | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _holder(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr.lstrip("_") in HOLDERS
    return isinstance(node, ast.Name) and node.id.lstrip("_") in HOLDERS


def _text(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
