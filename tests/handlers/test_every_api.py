"""The tests of kbroker/handlers/<api>.py stand in test_<api>.py."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HANDLERS = HERE.parents[1] / "kbroker" / "handlers"
APIS = sorted(path.stem for path in HANDLERS.glob("*.py") if path.stem != "__init__")
ABOUT_ALL = {"acl_changes", "every_api", "late_logs", "long_requests", "refusals", "resources"}


@pytest.mark.parametrize("api", APIS)
def test_an_api_has_tests_that_send_its_request(api):
    source = HERE / f"test_{api}.py"
    assert source.exists(), f"write {source.name}"
    tree = ast.parse(source.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert any(function.name.startswith("test_") for function in functions)
    helpers = [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.level == 1]
    sources = [source, *(HERE / f"{helper}.py" for helper in helpers)]
    request = "".join(part.capitalize() for part in api.split("_")) + "Request"
    assert any(request in each.read_text() for each in sources), f"{source.name} sends no {request}"


def test_every_module_of_tests_is_about_an_api_or_about_all():
    modules = {path.stem.removeprefix("test_") for path in HERE.glob("test_*.py")}
    assert modules == {*APIS, *ABOUT_ALL}
