"""One scenario, two brokers, equal observations.

A scenario is a function of a `Side`: it sends what it likes and returns what it saw as plain data. What
Apache Kafka returns is recorded (recordings.py); the brokers that run are compared with that. Of an error
message only its presence counts, and kbroker may give one where Kafka gives none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from compat.differential.recordings import RECORD, Recording, Stable
from compat.harness.brokers import APACHE, KBROKER, Server
from compat.harness.side import TEXT, Side

Scenario = Callable[[Side], Any]


class Pair:
    """kbroker and Apache Kafka: those of them that run, and the recording of Apache Kafka."""

    def __init__(self, servers: Sequence[Server], recording: Recording) -> None:
        self.sides = tuple(Side(server) for server in servers)
        self._recording = recording
        self._stable = {side.name: Stable() for side in self.sides}

    def same(self, scenario: Scenario, about: str = "") -> None:
        """Both return the same; `about` says in a failure which scenario it was."""
        self.compare(scenario, lambda ours, kafkas: _fail_if_different(ours, kafkas, KBROKER, about))

    def compare(self, scenario: Scenario, comparison: Callable[[Any, Any], None]) -> None:
        """Both return what the comparison accepts: kbroker's, Kafka's, in their recorded form."""
        observed = {side.name: self._stable[side.name](scenario(side)) for side in reversed(self.sides)}
        expected = self._expected(observed)
        if KBROKER in observed and not self._recording.records:
            comparison(observed[KBROKER], expected)

    def kafkas(self, scenario: Scenario) -> Any:
        """What Apache Kafka returns, to be compared with something else than a running kbroker."""
        return self._expected(
            {side.name: self._stable[side.name](scenario(side)) for side in self.sides if side.name == APACHE}
        )

    def disconnect(self) -> None:
        for side in self.sides:
            side.disconnect()

    def _expected(self, observed: dict[str, Any]) -> Any:
        """The recorded observation; if Kafka runs, it is what Kafka returned now."""
        if self._recording.records:
            self._recording.write_down(observed[APACHE])
            return observed[APACHE]
        expected = self._recording.expected()
        if APACHE in observed:
            _fail_if_different(observed[APACHE], expected, "Kafka now", f"not as recorded ({RECORD})")
        return expected


def _fail_if_different(found: Any, expected: Any, who: str, about: str) -> None:
    differences = list(_differences(found, expected, "", who))
    if differences:
        shown = "\n".join(differences[:25])
        pytest.fail(f"{about}\n{len(differences)} differences:\n{shown}".lstrip(), pytrace=False)


def _differences(found: Any, expected: Any, path: str, who: str) -> Iterable[str]:
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted(found.keys() | expected.keys(), key=str):
            if name not in found:
                yield f"{path}.{name}: {who} has none, Kafka {_short(expected[name])}"
            elif name not in expected:
                yield f"{path}.{name}: {who} {_short(found[name])}, Kafka has none"
            else:
                yield from _differences(found[name], expected[name], f"{path}.{name}", who)
    elif isinstance(found, list) and isinstance(expected, list):
        if len(found) != len(expected):
            counts = f"{who} has {len(found)}, Kafka {len(expected)}"
            yield f"{path}: {counts}: {_short(found)} / {_short(expected)}"
            return
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]", who)
    elif found == TEXT and expected is None:
        return  # a reason where Kafka gives none
    elif found != expected:
        yield f"{path}: {who} {_short(found)}, Kafka {_short(expected)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:297] + "..."
