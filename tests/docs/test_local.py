"""docs/local.md: every example prints what it says, and nothing of the API is missing."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kbroker.local import (
    Fetched,
    LocalBroker,
    ReceivedRecord,
    RecordMetadata,
    Subscription,
    Transaction,
    errors,
)
from tests.docs.console import as_shown

PAGE = (Path(__file__).parents[2] / "docs" / "local.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_example_has_its_output() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") > 5


@pytest.mark.parametrize(("example", "output"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_example_prints_what_is_shown(example: str, output: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert as_shown(done.stdout, output), done.stdout
    assert done.stderr == ""


def members(kind: type) -> set[str]:
    return {
        name
        for each in kind.__mro__
        if each.__module__.startswith("kbroker.")
        for name in vars(each)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    "kind", [LocalBroker, Subscription, Transaction, ReceivedRecord, Fetched, RecordMetadata]
)
def test_every_public_member_is_on_the_page(kind: type) -> None:
    internal = {"commits", "high_watermark", "last_stable_offset", "log_start_offset"}
    for name in members(kind) - internal:
        assert re.search(rf"\b{name}\b", PAGE), name


@pytest.mark.parametrize("method", ["publish", "subscribe", "fetch", "transaction", "reset_offsets"])
def test_every_option_is_on_the_page(method: str) -> None:
    for name in list(inspect.signature(getattr(LocalBroker, method)).parameters)[2:]:
        assert f"{name}=" in PAGE or f"`{name}" in PAGE or f", {name}" in PAGE, name


def test_the_constructor_is_shown_as_it_is() -> None:
    parameters = list(inspect.signature(LocalBroker).parameters.values())
    shown = [f"{each.name}={each.default!r}" for each in parameters]
    assert f"LocalBroker({', '.join([shown[0], '*', *shown[1:]])})" in PAGE


def test_errors_that_are_named_are_there() -> None:
    section = PAGE.split("## Errors")[1].split("\n## ")[0]
    names = set(re.findall(r"`([A-Z]\w+)`", section)) - {"ErrorCode"}
    assert len(names) > 5
    for name in names:
        assert issubclass(getattr(errors, name), Exception)
