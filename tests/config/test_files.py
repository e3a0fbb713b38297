"""Settings files: Java properties and YAML."""

from __future__ import annotations

import pytest

from kbroker.config import files
from kbroker.config.errors import SettingError


def test_properties_are_read_as_java_reads_them():
    text = (
        "# comment\n! comment too\n\n"
        "a=1\n b : 2\nc 3\nd\n"
        "e = with = signs \n"
        "long = one, \\\n    two, \\\r\n    three\n"
        "path = C:\\\\data\n"
        "key\\ with\\=odd = x\n"
        "unicode = \\u00e9\\t|\n"
        "not.continued = \\\\\nlast = end\\"
    )
    assert files.parse_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "",
        "e": "with = signs ",
        "long": "one, two, three",
        "path": "C:\\data",
        "key with=odd": "x",
        "unicode": "é\t|",
        "not.continued": "\\",
        "last": "end",
    }


def test_yaml_may_be_flat_or_nested(tmp_path):
    path = tmp_path / "kbroker.yaml"
    path.write_text(
        "log.retention.ms: 60000\n"
        "log:\n  segment: {bytes: 1048576}\n  cleaner.enable: no\n"
        "listeners: [PLAINTEXT://127.0.0.1:0, OTHER://:0]\n"
        "broker.rack: null\n"
        "log.cleaner.min.cleanable.ratio: 0.25\n"
    )
    assert files.read(path) == {
        "log.retention.ms": "60000",
        "log.segment.bytes": "1048576",
        "log.cleaner.enable": "false",
        "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://:0",
        "log.cleaner.min.cleanable.ratio": "0.25",
    }


def test_an_empty_yaml_file_sets_nothing(tmp_path):
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing yet\n")
    assert files.read(path) == {}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: [1", "not YAML"),
        (b"\tfoo: 1", "line 1: not YAML"),
        (b"just words", "expected settings as 'name: value'"),
        (b"node.id=1\nnum.partitions=3\n", "must end in .properties"),
        (b"log: {dirs: a}\nlog.dirs: b\n", "log.dirs is set twice"),
        (b"\xff\xfe\x00", "it is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_understood_is_explained(tmp_path, content, problem):
    path = tmp_path / "settings.yaml"
    path.write_bytes(content)
    with pytest.raises(SettingError) as error:
        files.read(path)
    assert problem in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_that_cannot_be_read_is_explained(tmp_path):
    with pytest.raises(SettingError, match=r"cannot read .*missing.yaml: no such file"):
        files.read(tmp_path / "missing.yaml")
    with pytest.raises(SettingError, match=r"cannot read .*: is a directory"):
        files.read(tmp_path)
