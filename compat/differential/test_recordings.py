"""The recordings themselves: complete, of the pinned Kafka, in a stable form."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from compat.differential import recordings
from compat.differential.recordings import NOW, Recording, Recordings, Stable, load, pinned_version, to_text
from compat.harness.names import unique

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_each_recording_is_of_a_test_that_exists() -> None:
    command = [sys.executable, "-m", "pytest", str(HERE), "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    existing: dict[Path, set[str]] = defaultdict(set)
    for line in done.stdout.splitlines():
        file, found, test = line.partition("::")
        if found:
            existing[recordings.recording_of(ROOT / file)].add(test)
    for path in HERE.rglob("*.json"):
        assert load(path).keys() <= existing[path], path.name


def test_a_missing_recording_tells_how_to_record_it(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="make compat-record"):
        Recordings(records=False).of(tmp_path / "test_x.py", "test_y")
    with pytest.raises(pytest.fail.Exception, match="no recording of its scenario 1: make compat-record"):
        Recording("test_y", None, records=False).expected()


def test_a_recording_of_another_kafka_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_x.json").write_text(json.dumps({"kafka": "3.9.0", "tests": {}}))
    with pytest.raises(pytest.fail.Exception, match=f"is of Kafka 3.9.0, not {pinned_version()}"):
        load(tmp_path / "test_x.json")


def test_what_is_recorded_and_no_longer_asked_is_found() -> None:
    recording = Recording("test_y", [1, 2], records=False)
    assert recording.expected() == 1
    with pytest.raises(pytest.fail.Exception, match="1 recorded scenarios are no longer asked"):
        recording.check_all_were_expected()


@pytest.mark.parametrize("failed", [False, True])
def test_a_file_is_recorded_when_all_its_tests_have_passed(tmp_path: Path, *, failed: bool) -> None:
    recorded = Recordings(records=True)
    file = tmp_path / "test_x.py"
    recorded.of(file, "test_y").write_down({"a": [1]})
    if failed:
        recorded.failed(file)
    recorded.save()
    assert (tmp_path / "test_x.json").exists() is not failed
    if not failed:
        assert load(tmp_path / "test_x.json") == {"test_y": [{"a": [1]}]}


def test_names_times_and_bytes_are_written_in_a_stable_form() -> None:
    first, second = unique("topic"), unique("topic")
    stable = Stable()
    seen = {second: (f"{first}-a", second.encode(), NOW + 5, NOW - 1, True, None), 3: b"\0\xff"}
    assert stable(seen) == {
        "topic-<1>": ["topic-<2>-a", f"0x{b'topic-<1>'.hex()}", "<now+5>", "<now-1>", True, None],
        "3": "0x00ff",
    }
    assert stable(first) == "topic-<2>"


def test_text_is_json_and_short_parts_stand_in_one_line() -> None:
    value = {"b": [{"c": "x" * 150, "d": [1, 2]}, {"c": "x" * 150}], "a": None}
    assert json.loads(to_text(value)) == value
    assert [line[:10] for line in to_text(value).splitlines()] == [
        *("{", ' "a": null', ' "b": [', '  {"c": "x', '  {"c": "x', " ]", "}")
    ]
