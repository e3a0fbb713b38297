"""docs/testing.md: every example runs, and nothing of the API is missing."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path

import pytest

from kbroker.control.port import Control
from kbroker.testing import KafkaBroker, Record, Request
from tests.support.inner_pytest import PYTEST

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
EXAMPLES = re.findall(r"### (.*?)\n|## (.*?)\n|```python\n(.*?)```", PAGE, re.DOTALL)


def examples() -> dict[str, str]:
    """Section, and number in it → example"""
    found: dict[str, str] = {}
    section = ""
    for below, above, example in EXAMPLES:
        section = below or above or section
        if example:
            number = sum(name.startswith(section) for name in found) + 1
            found[f"{section} {number}"] = example
    return found


@pytest.mark.parametrize("name", examples())
def test_the_example_runs(name: str, tmp_path: Path) -> None:
    example = examples()[name]
    (tmp_path / "test_example.py").write_text(example)
    done = subprocess.run(
        [*PYTEST, "-W", "error", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert f"{len(re.findall('^def test_', example, re.MULTILINE))} passed" in done.stdout, done.stdout


def test_every_public_member_of_the_broker_is_on_the_page() -> None:
    made = KafkaBroker()
    members = {name for name in (*vars(KafkaBroker), *vars(made)) if not name.startswith("_")}
    assert len(members) > 20
    for name in members:
        assert re.search(rf"\b{name}\b", PAGE), name


@pytest.mark.parametrize("method", ["fail", "delay", "create_topic", "advance_time", "records"])
def test_signatures_are_shown_as_they_are(method: str) -> None:
    parameters = list(inspect.signature(getattr(KafkaBroker, method)).parameters.values())[1:]
    shown = ", ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in parameters
    )
    assert f"`{method}({shown})`".replace("'", '"') in PAGE


def test_the_constructor_is_shown_as_it_is() -> None:
    parameters = list(inspect.signature(KafkaBroker).parameters.values())
    shown = ", ".join(f"{each.name}={each.default!r}" for each in parameters)
    assert f"KafkaBroker({shown})" in PAGE


@pytest.mark.parametrize("answer", [Record, Request])
def test_the_fields_of_answers_are_named(answer: type[Record | Request]) -> None:
    assert ", ".join(f"`{field}`" for field in answer._fields) in PAGE


def test_every_action_of_the_control_port_is_named() -> None:
    actions = set(re.findall(r'^            "(\w+)": ', inspect.getsource(Control.__init__), re.MULTILINE))
    assert "fail" in actions
    for action in actions - {"connections"}:
        assert f"`{action}`" in PAGE, action
