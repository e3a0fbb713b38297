"""Recordings: what Apache Kafka answered to each test of compat/differential.

A JSON file lies beside each test file: the version of Kafka, and by test the observations of its scenarios in
their order. A file is recorded as a whole (`make compat-record`), and only if all its tests pass. Which
brokers answer, and how they are set up, is no matter of this module.

What differs from run to run is written in a stable form: unique names get numbers in the order they appear,
times are distances from NOW. Bytes are hexadecimal.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from compat.harness import jars
from compat.harness.names import SUFFIX

NOW = int(time.time() * 1000)
NEAR_MS = 86_400_000
RECORD = "make compat-record"
WIDTH = 200
_UNIQUE = re.compile(SUFFIX)
_UNIQUE_BYTES = re.compile(SUFFIX.encode())


def pinned_version() -> str:
    """The version of Apache Kafka that jars.lock pins."""
    return next(jar.version for jar in jars.locked()["kafka"] if jar.artifact == "kafka-clients")


class Recording:
    """The observations of one test."""

    def __init__(self, test: str, observations: list[Any] | None, *, records: bool) -> None:
        self.records = records
        """Whether observations are written down instead of compared."""
        self.observations: list[Any] = [] if observations is None or records else observations
        self._test = test
        self._position = 0

    def expected(self) -> Any:
        """What Kafka answered to the next scenario."""
        if self._position >= len(self.observations):
            pytest.fail(f"{self._test}: no recording of its scenario {self._position + 1}: {RECORD}")
        self._position += 1
        return self.observations[self._position - 1]

    def write_down(self, observation: Any) -> None:
        self.observations.append(observation)

    def check_all_were_expected(self) -> None:
        left = len(self.observations) - self._position
        if left and not self.records:
            pytest.fail(f"{self._test}: {left} recorded scenarios are no longer asked: {RECORD}")


class Recordings:
    """The recordings of a run, by test file."""

    def __init__(self, *, records: bool) -> None:
        self._records = records
        self._files: dict[Path, dict[str, list[Any]]] = {}
        self._recorded: dict[Path, dict[str, Recording]] = {}
        self._failed: set[Path] = set()

    def of(self, file: Path, test: str) -> Recording:
        if self._records:
            recording = Recording(test, None, records=True)
            self._recorded.setdefault(file, {})[test] = recording
            return recording
        if file not in self._files:
            self._files[file] = load(recording_of(file))
        return Recording(test, self._files[file].get(test), records=False)

    def failed(self, file: Path) -> None:
        self._failed.add(file)

    def save(self) -> None:
        for file, recorded in self._recorded.items():
            if file not in self._failed:
                tests = {test: each.observations for test, each in recorded.items()}
                recording_of(file).write_text(to_text({"kafka": pinned_version(), "tests": tests}) + "\n")


def recording_of(test_file: Path) -> Path:
    return test_file.with_suffix(".json")


def load(path: Path) -> dict[str, list[Any]]:
    """Test -> observations."""
    if not path.exists():
        pytest.fail(f"there is no {path.name}: {RECORD}")
    content = json.loads(path.read_text())
    if content["kafka"] != pinned_version():
        pytest.fail(f"{path.name} is of Kafka {content['kafka']}, not {pinned_version()}: {RECORD}")
    tests: dict[str, list[Any]] = content["tests"]
    return tests


class Stable:
    """Observations of one broker in one test, made of what JSON knows and equal in every run."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._text(str(key)): self(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self(item) for item in value]
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bytes):
            named = _UNIQUE_BYTES.sub(lambda found: self._numbered(found[0].decode()).encode(), value)
            return f"0x{named.hex()}"
        if isinstance(value, int) and not isinstance(value, bool) and abs(value - NOW) < NEAR_MS:
            return f"<now{value - NOW:+}>"
        return value

    def _text(self, text: str) -> str:
        return _UNIQUE.sub(lambda found: self._numbered(found[0]), text)

    def _numbered(self, suffix: str) -> str:
        return f"-<{self._numbers.setdefault(suffix, len(self._numbers) + 1)}>"


def to_text(value: Any, indent: str = "") -> str:
    """JSON with sorted keys; what fits into a line stands in one."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inner = indent + " "
    if isinstance(value, dict):
        opening, closing = "{", "}"
        parts = [f"{json.dumps(key)}: {to_text(value[key], inner)}" for key in sorted(value)]
    else:
        opening, closing = "[", "]"
        parts = [to_text(item, inner) for item in value]
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{closing}"
